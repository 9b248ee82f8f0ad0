//! One attempt: the subreaper of its tree, which does what its shim requests and reports what
//! happens. It kills the tree when the shim's end of the connection closes.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ostler_sandbox::spawn::memory;
use ostler_sandbox::stdio::Channels;
use ostler_sandbox::tree::{ProcessTree, TreeConfig, TreeReaper};
use ostler_sys::seqpacket::{self, Packet, ReceiveMode};
use ostler_sys::{pidfd, process_role, signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use rustix::termios::tcgetpgrp;

use crate::counters::Counters;
use crate::launch::{self, RunningCommand};
use crate::launch_error::LaunchError;
use crate::protocol::{
    LAUNCH_MAX_BYTES, LaunchRequest, MESSAGE_BYTES, TreeEnd, TreeEvent, TreeRequest, decode, encode,
};
use crate::secret_files::SecretFiles;

/// How long a process may hide from SIGKILL before the others are searched for again, in
/// milliseconds.
const KILL_AGAIN_MS: u64 = 50;

/// The step at which a socket could not be made.
const STEP_SOCKET: &str = "socket";

/// The runner of one attempt.
#[derive(Debug)]
struct Runner {
    connection: OwnedFd,
    children: OwnedFd,
    tree: ProcessTree,
    /// The master of its terminal.
    terminal: Option<OwnedFd>,
    /// A signal that stops the tree was requested, and none since that continues it.
    stop_requested: bool,
    /// Whether the leader's end was reported.
    leader_reported: bool,
    counters: Counters,
    /// The files that are removed at the end.
    _secrets: SecretFiles,
}

/// Serves one connection to its end; commands have this environment and what their request adds.
pub(crate) fn serve(connection: OwnedFd, environment: &[(OsString, OsString)]) {
    process_role::set_name(c"ostler-runner");
    process_role::become_subreaper();
    let Ok(children) = signals::sigchld_fd() else {
        return;
    };
    if let Ok(own) = pidfd::open(std::process::id()) {
        send(&connection, &TreeEvent::Hello, Some(own.as_fd()));
    }
    let Some(request) = receive_launch(&connection) else {
        return;
    };
    let counters = Counters::read();
    let send_channels = |channels: &Channels| {
        let mut messages = launch::messages(channels).into_iter();
        messages.try_for_each(|(message, end)| try_send(&connection, &message, Some(end)))
    };
    match launch::launch(&request, environment, send_channels) {
        Err(error) => send(&connection, &error.into_event(), None),
        Ok(command) => {
            Runner::new(connection, children, command, &request, counters).run();
        }
    }
}

/// Tells a shim that no runner can be made for it.
pub(crate) fn refuse(connection: &OwnedFd, error: Errno) {
    send(
        connection,
        &LaunchError::no_process(error).into_event(),
        None,
    );
}

/// Waits for the launch; none where the connection closes or sends something else.
fn receive_launch(connection: &OwnedFd) -> Option<LaunchRequest> {
    let mut buffer = [0; MESSAGE_BYTES];
    loop {
        let mut polled = [PollFd::new(connection, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        match seqpacket::receive(connection, &mut buffer, ReceiveMode::NonBlocking) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(Packet {
                len,
                descriptor: Some(file),
            }) if len > 0 => {
                let TreeRequest::Launch = decode(&buffer[..len]).ok()? else {
                    return None;
                };
                let bytes = memory::read_memfd(file, LAUNCH_MAX_BYTES).ok()?;
                return decode(&bytes).ok();
            }
            Ok(packet) if packet.len > 0 => {
                if let Ok(TreeRequest::Socket { ipv6 }) = decode(&buffer[..packet.len]) {
                    send_socket(connection, ipv6);
                }
                return None;
            }
            Ok(_) | Err(_) => return None,
        }
    }
}

/// Makes a TCP socket in the container's network namespace, for the host.
fn send_socket(connection: &OwnedFd, ipv6: bool) {
    let family = if ipv6 {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
    match socket {
        Ok(socket) => send(connection, &TreeEvent::Socket, Some(socket.as_fd())),
        Err(errno) => {
            let failed = LaunchError::at(STEP_SOCKET)(errno);
            send(connection, &failed.into_event(), None);
        }
    }
}

/// Sends one message. A shim that does not read has closed its end or will: then the tree is killed.
fn send(connection: &OwnedFd, event: &TreeEvent, descriptor: Option<BorrowedFd<'_>>) {
    let _closed = try_send(connection, event, descriptor);
}

fn try_send(
    connection: &OwnedFd,
    event: &TreeEvent,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let packet = encode(event).map_err(|_| Errno::INVAL)?;
    seqpacket::send(connection.as_fd(), &packet, descriptor)
}

impl Runner {
    /// Reports the start.
    fn new(
        connection: OwnedFd,
        children: OwnedFd,
        command: RunningCommand,
        request: &LaunchRequest,
        counters: Counters,
    ) -> Self {
        let RunningCommand {
            child,
            channels,
            secrets,
        } = command;
        let master = channels.sources.first().filter(|_| channels.terminal);
        let terminal = master.and_then(|(_, master)| fcntl_dupfd_cloexec(master, 3).ok());
        send(&connection, &TreeEvent::Started, Some(child.pidfd.as_fd()));
        let config = TreeConfig {
            reaper: TreeReaper::Subreaper,
            id: request.id,
            orphan_policy: request.orphan_policy,
        };
        Self {
            connection,
            children,
            tree: ProcessTree::new(config, child, None),
            terminal,
            stop_requested: false,
            leader_reported: false,
            counters,
            _secrets: secrets,
        }
    }

    fn run(mut self) {
        loop {
            let mut polled = [
                PollFd::new(&self.connection, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return self.kill_all(),
            }
            let [requested, ended] = polled.map(|it| !it.revents().is_empty());
            if requested && !self.handle_requests() {
                return self.kill_all();
            }
            if ended && self.on_child_event() {
                return;
            }
        }
    }

    /// Handles what was requested; false when the connection has closed.
    fn handle_requests(&mut self) -> bool {
        let mut buffer = [0; MESSAGE_BYTES];
        loop {
            match seqpacket::receive(&self.connection, &mut buffer, ReceiveMode::NonBlocking) {
                Err(Errno::AGAIN) => return true,
                Ok(packet) if packet.len > 0 => {
                    if let Ok(request) = decode(&buffer[..packet.len]) {
                        self.handle(request);
                    }
                }
                Ok(_) | Err(_) => return false,
            }
        }
    }

    fn handle(&mut self, request: TreeRequest) {
        match request {
            TreeRequest::Launch | TreeRequest::Socket { .. } => {}
            TreeRequest::Signal(signal) => {
                match signal {
                    libc::SIGSTOP | libc::SIGTSTP => self.stop_requested = true,
                    libc::SIGCONT => self.stop_requested = false,
                    _ => {}
                }
                self.tree.signal_group(signal);
            }
            TreeRequest::Terminate => self.tree.terminate(),
            TreeRequest::HangUp => {
                let foreground = self.terminal.as_ref().and_then(|it| tcgetpgrp(it).ok());
                self.tree
                    .hang_up(foreground.map(|group| group.as_raw_nonzero().get()));
            }
            TreeRequest::StopAll => {
                self.stop_requested = true;
                self.tree.stop_all();
            }
            TreeRequest::ContinueAll => {
                self.stop_requested = false;
                self.tree.continue_all();
            }
            TreeRequest::Kill => self.tree.kill(),
            TreeRequest::Detach => self.tree.detach(),
        }
    }

    /// Handles the end or a change of state of a process; true when none is left.
    fn on_child_event(&mut self) -> bool {
        signals::drain_signalfd(self.children.as_fd());
        if self.terminal.is_some() {
            self.tree.continue_stopped(self.stop_requested);
        }
        let empty = self.tree.reap();
        if let Some(status) = self.tree.status()
            && !self.leader_reported
            && !empty
        {
            self.leader_reported = true;
            let usage = self.tree.usage();
            let exited = TreeEvent::LeaderExited { status, usage };
            send(&self.connection, &exited, None);
        }
        if empty {
            let end = TreeEvent::Empty(self.end());
            send(&self.connection, &end, None);
        }
        empty
    }

    fn end(&self) -> TreeEnd {
        let now = Counters::read();
        TreeEnd {
            status: self.tree.status(),
            usage: self.tree.usage(),
            left_behind: self.tree.left_behind(),
            failed_status: self.tree.failed_status(),
            oom_kills: self.counters.oom_kills_until(now),
            limits_hit: self.counters.limits_until(now),
        }
    }

    /// Kills until nothing is left. What this process cannot kill is left to the init.
    fn kill_all(mut self) {
        let again = Timespec::try_from(Duration::from_millis(KILL_AGAIN_MS)).ok();
        loop {
            self.tree.kill();
            if self.tree.reap() {
                return;
            }
            let mut polled = [PollFd::new(&self.children, PollFlags::IN)];
            if matches!(poll(&mut polled, again.as_ref()), Err(error) if error != Errno::INTR) {
                return;
            }
            signals::drain_signalfd(self.children.as_fd());
        }
    }
}
