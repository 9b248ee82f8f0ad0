//! A tree in a container, by its runner: requests go over the connection, and the tree's state is
//! what the runner has reported.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_backend::{ContainerAttachment, LaunchIo, LaunchPlan};
use ostler_container_init::protocol::{
    LaunchRequest, LaunchStdio, MESSAGE_BYTES, SOCKET_NAME, TreeEnd, TreeEvent, TreeRequest,
    decode, encode,
};
use ostler_model::termination::WaitStatus;
use ostler_model::{OrphanPolicy, Signal, StreamName, Usage};
use ostler_sandbox::rlimit;
use ostler_sandbox::tree::is_failure;
use ostler_sys::errno::errno_of;
use ostler_sys::peer;
use ostler_sys::seqpacket::{self, Packet, ReceiveMode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::launch_failure::LaunchFailure;
use crate::sys::memory;
use crate::sys::proc;

/// How long a runner may take to start a command, in milliseconds: searching its program on a busy
/// machine, but not the time of a container that was frozen.
const LAUNCH_MS: u64 = 10_000;
/// How long an init may take to make a socket, in milliseconds.
const SOCKET_MS: u64 = 2_000;
/// The status of a leader whose end nobody saw.
const KILLED: WaitStatus = WaitStatus::Signal(Signal::KILL);
/// The step at which the container could not be reached.
pub(super) const STEP_CONTAINER: &str = "container";

/// A leader and its descendants in a container.
#[derive(Debug)]
pub(crate) struct ContainerTree {
    connection: OwnedFd,
    /// The leader's pid on this machine; 0 where it has none.
    pid: u32,
    /// The runner's, from which the tree descends.
    runner: i32,
    orphan_policy: OrphanPolicy,
    status: Option<WaitStatus>,
    /// What processes used until the leader's end.
    usage: Usage,
    /// The end of the tree, as the runner reported it.
    end: Option<TreeEnd>,
    /// The connection closed before the end was reported: the container, or its runner, has ended,
    /// and with it every process.
    lost: bool,
}

/// A tree that was just started, with the shim's ends of its standard streams.
#[derive(Debug)]
pub(super) struct StartedContainerTree {
    pub(super) tree: ContainerTree,
    pub(super) sources: Vec<(StreamName, OwnedFd)>,
    pub(super) input: Option<OwnedFd>,
}

impl ContainerTree {
    /// Starts the command of a plan in its container.
    pub(super) fn start(
        plan: &LaunchPlan,
        attachment: &ContainerAttachment,
    ) -> Result<StartedContainerTree, LaunchFailure> {
        let connection = connect(attachment)?;
        match send_launch(&connection, plan) {
            // What it sent before it closed says why.
            Ok(())
            | Err(LaunchFailure {
                errno: Errno::PIPE, ..
            }) => {}
            Err(failure) => return Err(failure),
        }
        let mut progress = LaunchProgress::default();
        let deadline = Instant::now() + Duration::from_millis(LAUNCH_MS);
        while !progress.has_started {
            match receive_until(&connection, deadline) {
                Ok((event, descriptor)) => progress.record(event, descriptor)?,
                // The command may have run, and have killed or stopped its runner: what is left of
                // it is found out as for any tree.
                Err(_) if !progress.sources.is_empty() => break,
                Err(failure) => return Err(failure),
            }
        }
        for (_, source) in &progress.sources {
            rustix::io::ioctl_fionbio(source, true).map_err(LaunchFailure::at(STEP_CONTAINER))?;
        }
        if let Some(input) = &progress.input {
            rustix::io::ioctl_fionbio(input, true).map_err(LaunchFailure::at(STEP_CONTAINER))?;
        }
        Ok(StartedContainerTree {
            tree: Self {
                connection,
                pid: progress.leader,
                runner: progress.runner,
                orphan_policy: plan.orphan_policy,
                status: None,
                usage: Usage::default(),
                end: None,
                lost: false,
            },
            sources: progress.sources,
            input: progress.input,
        })
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// The runner's pid on this machine; 0 where it has none.
    pub(super) const fn runner(&self) -> i32 {
        self.runner
    }

    pub(super) fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.has_ended()).then(|| self.connection.as_fd())
    }

    pub(super) const fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    pub(super) fn final_status(&self) -> Option<WaitStatus> {
        let failed = self.end.as_ref().and_then(|end| end.failed_status);
        failed.or(self.status)
    }

    pub(super) fn orphan_policy(&self) -> OrphanPolicy {
        match self.status {
            Some(status) if is_failure(status) => OrphanPolicy::Kill,
            Some(_) | None => self.orphan_policy,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.end.as_ref().map_or(self.usage, |end| end.usage)
    }

    pub(super) fn left_behind(&self) -> u32 {
        self.end.as_ref().map_or(0, |end| end.left_behind)
    }

    /// The end of the tree, once it was reported.
    pub(super) const fn end(&self) -> Option<&TreeEnd> {
        self.end.as_ref()
    }

    /// Whether the container or the runner ended before the tree was seen to end.
    pub(super) const fn is_lost(&self) -> bool {
        self.lost
    }

    const fn has_ended(&self) -> bool {
        self.lost || self.end.is_some()
    }

    /// The descendants of the runner, as far as this machine shows them.
    pub(super) fn members(&self) -> Vec<i32> {
        if self.runner == 0 || self.has_ended() {
            return Vec::new();
        }
        let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| stat.is_alive());
        let descendants = proc::descendants(self.runner).into_iter();
        descendants.filter(alive).collect()
    }

    /// Handles what the runner reported; true when no process is left.
    pub(super) fn reap(&mut self) -> bool {
        while !self.has_ended() {
            match receive(&self.connection) {
                Ok(Some((event, _))) => self.record(event),
                Ok(None) => break,
                Err(_) => {
                    self.lost = true;
                    self.status.get_or_insert(KILLED);
                }
            }
        }
        self.has_ended()
    }

    fn record(&mut self, event: TreeEvent) {
        match event {
            TreeEvent::LeaderExited { status, usage } => {
                self.status = Some(status);
                self.usage = usage;
            }
            TreeEvent::Empty(end) => {
                let status = self.status.or(end.status);
                self.status = status.or(Some(KILLED));
                self.end = Some(end);
            }
            TreeEvent::Hello
            | TreeEvent::Output(_)
            | TreeEvent::Input
            | TreeEvent::Started
            | TreeEvent::Socket
            | TreeEvent::Failed { .. } => {}
        }
    }

    pub(super) fn detach(&self) {
        self.send(TreeRequest::Detach);
    }

    pub(super) fn signal_group(&self, signal: i32) {
        self.send(TreeRequest::Signal(signal));
    }

    pub(super) fn terminate(&self) {
        self.send(TreeRequest::Terminate);
    }

    pub(super) fn hang_up(&self) {
        self.send(TreeRequest::HangUp);
    }

    pub(super) fn stop_all(&self) {
        self.send(TreeRequest::StopAll);
    }

    pub(super) fn continue_all(&self) {
        self.send(TreeRequest::ContinueAll);
    }

    pub(super) fn kill(&self) {
        self.send(TreeRequest::Kill);
    }

    /// Sends a request. One that a runner does not take is one of a runner that is gone or frozen:
    /// the kill escalation goes on to its next step.
    fn send(&self, request: TreeRequest) {
        if let Ok(packet) = encode(&request) {
            let _gone = seqpacket::send(self.connection.as_fd(), &packet, None);
        }
    }
}

/// A TCP socket in the network of a container.
///
/// # Errors
/// When the container's init cannot be reached in time, or the kernel refuses a socket.
pub(crate) fn socket_in_container(
    attachment: &ContainerAttachment,
    ipv6: bool,
) -> Result<OwnedFd, Errno> {
    let connection = connect(attachment).map_err(|failure| failure.errno)?;
    let packet = encode(&TreeRequest::Socket { ipv6 }).map_err(|_| Errno::INVAL)?;
    seqpacket::send(connection.as_fd(), &packet, None)?;
    let deadline = Instant::now() + Duration::from_millis(SOCKET_MS);
    loop {
        let received = receive_until(&connection, deadline).map_err(|failure| failure.errno)?;
        match received {
            (TreeEvent::Socket, Some(socket)) => return Ok(socket),
            (TreeEvent::Failed { errno, .. }, _) => return Err(Errno::from_raw_os_error(errno)),
            _ => {}
        }
    }
}

/// What a runner has sent before its command runs.
#[derive(Debug, Default)]
struct LaunchProgress {
    runner: i32,
    leader: u32,
    sources: Vec<(StreamName, OwnedFd)>,
    input: Option<OwnedFd>,
    has_started: bool,
}

impl LaunchProgress {
    fn record(
        &mut self,
        event: TreeEvent,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), LaunchFailure> {
        match (event, descriptor) {
            (TreeEvent::Hello, Some(runner)) => {
                self.runner = i32::try_from(pid_of(&runner)).unwrap_or(0);
            }
            (TreeEvent::Output(stream), Some(source)) => self.sources.push((stream, source)),
            (TreeEvent::Input, Some(input)) => self.input = Some(input),
            (TreeEvent::Started, leader) => {
                self.leader = leader.as_ref().map_or(0, pid_of);
                self.has_started = true;
            }
            (
                TreeEvent::Failed {
                    step,
                    errno,
                    message,
                },
                _,
            ) => {
                return Err(LaunchFailure {
                    step: known_step(&step),
                    errno: Errno::from_raw_os_error(errno.max(1)),
                    message,
                });
            }
            (
                TreeEvent::Hello
                | TreeEvent::Output(_)
                | TreeEvent::Input
                | TreeEvent::Socket
                | TreeEvent::LeaderExited { .. }
                | TreeEvent::Empty(_),
                _,
            ) => {}
        }
        Ok(())
    }
}

/// The step of a runner's failure; an unknown one is the container's.
fn known_step(step: &str) -> &'static str {
    use crate::sys::clone::SpawnStep;
    let steps = [
        SpawnStep::Exec.name(),
        SpawnStep::Chdir.name(),
        SpawnStep::Clone.name(),
        SpawnStep::Limits.name(),
        SpawnStep::Stdio.name(),
        SpawnStep::Terminal.name(),
        ostler_backend::STEP_TERMINAL,
    ];
    let known = steps.into_iter().find(|known| *known == step);
    known.unwrap_or(STEP_CONTAINER)
}

/// The pid of a pidfd's process on this machine; 0 where it has none or has ended (proc(5),
/// `fdinfo`).
fn pid_of(pidfd: &OwnedFd) -> u32 {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()));
    let info = info.unwrap_or_default();
    let mut pids = info.lines().filter_map(|line| line.strip_prefix("Pid:"));
    let pid = pids.find_map(|value| value.trim().parse().ok());
    pid.unwrap_or(0)
}

/// Connects to the container's init, and to nobody who has taken its place.
fn connect(attachment: &ContainerAttachment) -> Result<OwnedFd, LaunchFailure> {
    let unreachable = |errno| {
        let container = short(&attachment.container);
        let message = match errno {
            Errno::CONNREFUSED | Errno::NOENT => {
                format!(
                    "container {container} ended, or was removed, before the command was started"
                )
            }
            _ => format!(
                "the init of container {container} cannot be reached: {}",
                std::io::Error::from(errno)
            ),
        };
        LaunchFailure {
            step: STEP_CONTAINER,
            errno,
            message: Some(message),
        }
    };
    let socket: &Path = attachment.socket.as_path();
    let directory = socket.parent().unwrap_or_else(|| Path::new("/"));
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty()).map_err(unreachable)?;
    let connection = seqpacket::connect(
        directory.as_fd(),
        SOCKET_NAME,
        Duration::from_millis(LAUNCH_MS),
    )
    .map_err(unreachable)?;
    if peer::pid(&connection).map_err(unreachable)? != Some(attachment.init_pid) {
        return Err(LaunchFailure {
            step: STEP_CONTAINER,
            errno: Errno::PERM,
            message: Some(format!(
                "the socket of container {} is not that of its init: something inside has replaced it",
                short(&attachment.container)
            )),
        });
    }
    Ok(connection)
}

/// A container's id as people write it.
fn short(id: &str) -> &str {
    const SHORT_CHARS: usize = 12;
    id.get(..SHORT_CHARS).unwrap_or(id)
}

fn send_launch(connection: &OwnedFd, plan: &LaunchPlan) -> Result<(), LaunchFailure> {
    let failed = LaunchFailure::at(STEP_CONTAINER);
    let request = LaunchRequest {
        id: plan.id,
        program: plan.program.clone(),
        fallback: plan.program_fallback.clone(),
        argv: plan.argv.clone(),
        env: plan.env.clone(),
        cwd: plan.cwd.clone(),
        stdio: match &plan.io {
            LaunchIo::Empty => LaunchStdio::Null,
            LaunchIo::Bytes(bytes) => LaunchStdio::Bytes(bytes.as_slice().into()),
            LaunchIo::Piped => LaunchStdio::Piped,
            LaunchIo::Pty(size) => LaunchStdio::Terminal(*size),
        },
        orphan_policy: plan.orphan_policy,
        rlimits: rlimit::child_limits(&plan.limits),
        secret_files: plan.secret_files.clone(),
    };
    let bytes = encode(&request).map_err(|_| failed(Errno::INVAL))?;
    let file = memory::memfd_with("ostler-launch", &bytes);
    let file = file.map_err(|error| failed(errno_of(&error)))?;
    let packet = encode(&TreeRequest::Launch).map_err(|_| failed(Errno::INVAL))?;
    seqpacket::send(connection.as_fd(), &packet, Some(file.as_fd())).map_err(failed)
}

/// One message of the runner with its descriptor; none where nothing was sent. An error when the
/// connection has closed or says what no runner says.
fn receive(connection: &OwnedFd) -> Result<Option<(TreeEvent, Option<OwnedFd>)>, Errno> {
    let mut buffer = [0; MESSAGE_BYTES];
    match seqpacket::receive(connection, &mut buffer, ReceiveMode::NonBlocking) {
        Err(Errno::AGAIN) => Ok(None),
        // The peer has closed without reading all requests, and what it sent before is still there.
        Err(Errno::CONNRESET) => receive(connection),
        Err(error) => Err(error),
        Ok(Packet { len: 0, .. }) => Err(Errno::PIPE),
        Ok(Packet { len, descriptor }) => {
            let event = decode(&buffer[..len]).map_err(|_| Errno::PROTO)?;
            Ok(Some((event, descriptor)))
        }
    }
}

fn receive_until(
    connection: &OwnedFd,
    deadline: Instant,
) -> Result<(TreeEvent, Option<OwnedFd>), LaunchFailure> {
    loop {
        let received = receive(connection).map_err(|errno| LaunchFailure {
            step: STEP_CONTAINER,
            errno,
            message: Some("the container ended before the command was started".to_owned()),
        })?;
        if let Some(received) = received {
            return Ok(received);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LaunchFailure {
                step: STEP_CONTAINER,
                errno: Errno::TIMEDOUT,
                message: Some(format!(
                    "the container's init did not start the command within {LAUNCH_MS} ms: it may \
                     be paused"
                )),
            });
        }
        let timeout = Timespec::try_from(left).ok();
        let mut polled = [PollFd::new(connection, PollFlags::IN)];
        let _interrupted = poll(&mut polled, timeout.as_ref());
    }
}
