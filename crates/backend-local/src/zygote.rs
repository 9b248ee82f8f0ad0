//! The zygote (process `ostler-keeper`): a small single-threaded process that forks shims and, as
//! their nearest subreaper, kills the processes that a killed shim leaves.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};

use ostler_journal::Durability;
use ostler_sandbox::cgroup::{CgroupRoot, ShimName, SlotOwner};
use ostler_sys::process_role::{self, Forked};
use ostler_sys::seqpacket::{self, ReceiveMode};
use ostler_sys::{open_files, signals};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::proto::{ZygoteEvent, ZygoteRequest, decode, encode};
use crate::shim::{ShimInfo, ShimMode, ShimSetup, serve};
use crate::sys::wait::{self, ReapOutcome};
use crate::sys::{proc, process_name};

/// The single command-line argument that makes an executable run as the zygote.
pub const ZYGOTE_ARGUMENT: &str = "__keeper";
/// The size of the largest message from the daemon, in bytes.
const MESSAGE_BYTES: usize = 256;

/// Runs the zygote. Must be called first in `main`, before any thread, large allocation or other
/// descriptor, when the only argument is [`ZYGOTE_ARGUMENT`]. Descriptor 0 is a sequenced-packet
/// socket to the daemon, descriptor 1 the directory of executions. Exits when the daemon's end of
/// the socket closes.
pub fn zygote_main() -> ! {
    process_role::set_name(process_name::ZYGOTE);
    signals::reset_dispositions();
    // Leaves the daemon's session: its terminal and the signals of its group do not concern the
    // zygote.
    let _leader_already = rustix::process::setsid();
    let _stays = rustix::process::chdir(c"/");
    let status = match Zygote::start() {
        Ok(mut zygote) => {
            zygote.run();
            0
        }
        Err(error) => error.raw_os_error(),
    };
    process_role::exit_now(status)
}

/// Blocks until a child has ended, without reaping it.
fn wait_any_child() {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let _ended = rustix::io::retry_on_intr(|| waitid(WaitId::All, flags));
}

struct Zygote {
    daemon: OwnedFd,
    executions: OwnedFd,
    child_signal: OwnedFd,
    boot_id: String,
    cgroup_root: CgroupRoot,
    shims: HashMap<i32, u64>,
}

impl Zygote {
    fn start() -> Result<Self, Errno> {
        let (daemon, executions) = process_role::take_inherited_descriptors()?;
        process_role::become_subreaper();
        let child_signal = signals::sigchld_fd()?;
        let (cgroup_root, abilities) = ostler_sandbox::probe(true);
        let subtree = cgroup_root.owned_by(SlotOwner::of(executions.as_fd())?);
        let zygote = Self {
            daemon,
            executions,
            child_signal,
            boot_id: proc::boot_id(),
            cgroup_root: subtree,
            shims: HashMap::new(),
        };
        zygote.send(
            &ZygoteEvent::Hello {
                capabilities: abilities,
            },
            None,
        );
        // Before the first shim, since the kernel takes 10 ms and more to move a process from one
        // cgroup to another, and here nothing waits for it.
        zygote.cgroup_root.leave_systemd_unit();
        zygote.cgroup_root.remove_stale();
        Ok(zygote)
    }

    fn run(&mut self) {
        loop {
            let mut polled = [
                PollFd::new(&self.daemon, PollFlags::IN),
                PollFd::new(&self.child_signal, PollFlags::IN),
            ];
            if rustix::event::poll(&mut polled, None).is_err() {
                continue;
            }
            let [has_request, has_dead_child] = polled.map(|poll| !poll.revents().is_empty());
            if has_dead_child {
                signals::drain_signalfd(self.child_signal.as_fd());
                self.reap_children();
            }
            if has_request && !self.handle_request() {
                return;
            }
        }
    }

    /// Handles one request; false when the daemon is gone.
    fn handle_request(&mut self) -> bool {
        let mut buffer = [0; MESSAGE_BYTES];
        let received = seqpacket::receive(&self.daemon, &mut buffer, ReceiveMode::NonBlocking);
        match received {
            Err(Errno::AGAIN) => true,
            Err(_) => false,
            Ok(packet) if packet.len == 0 => false,
            Ok(packet) => {
                let (count, durability) = match decode(&buffer[..packet.len]) {
                    Ok(ZygoteRequest::Fork { count }) => (count, Durability::PageCache),
                    Ok(ZygoteRequest::ForkDurable { count }) => (count, Durability::Fsync),
                    Err(_) => return true,
                };
                open_files::raise_limit_once();
                for _ in 0..count {
                    self.fork_shim(durability);
                }
                true
            }
        }
    }

    fn fork_shim(&mut self, durability: Durability) {
        let forked = seqpacket::pair().and_then(|pair| Ok((pair, process_role::fork()?)));
        match forked {
            Err(error) => {
                let errno = error.raw_os_error();
                self.send(&ZygoteEvent::ForkFailed { errno }, None);
            }
            Ok(((daemons_end, shims_end), Forked::Child)) => {
                drop(daemons_end);
                self.become_shim(shims_end, durability);
            }
            Ok(((daemons_end, shims_end), Forked::Parent(pid))) => {
                drop(shims_end);
                self.shims.insert(pid, proc::start_time(pid));
                let pid = pid.unsigned_abs();
                self.send(&ZygoteEvent::Shim { pid }, Some(daemons_end));
            }
        }
    }

    /// The child's side of the fork: releases everything the zygote holds.
    fn become_shim(&mut self, socket: OwnedFd, durability: Durability) -> ! {
        process_role::set_name(process_name::SHIM);
        // The session of the command, too: no other execution has processes in it.
        let _leader_already = rustix::process::setsid();
        process_role::become_subreaper();
        let identity = ShimInfo::own(ShimMode::Process, self.boot_id.clone(), durability);
        let mut slot = self.cgroup_root.slot(identity.name(0));
        slot.attach_shim();
        let executions = self.executions.try_clone();
        process_role::replace_with_null(&mut [&mut self.daemon, &mut self.child_signal]);
        if let Ok(executions) = executions {
            serve(ShimSetup {
                socket,
                executions,
                identity,
                slot: Some(slot),
            });
        }
        process_role::exit_now(0)
    }

    /// Reaps ended children. A child that is no shim was orphaned by a killed shim, and is killed
    /// with everything under it.
    fn reap_children(&mut self) {
        let mut dead = Vec::new();
        while let ReapOutcome::Reaped(reaped) = wait::reap(-1) {
            if let Some(start) = self.shims.remove(&reaped.pid) {
                dead.push((reaped.pid, start));
            }
        }
        for &(pid, start) in &dead {
            self.end_slot(pid, start);
        }
        let swept = self.sweep(&mut dead);
        for (pid, start) in dead {
            self.cgroup_root.remove_slot(ShimName {
                pid,
                start,
                serial: 0,
            });
            let pid = pid.unsigned_abs();
            self.send(&ZygoteEvent::ShimGone { pid, swept }, None);
        }
    }

    /// Kills orphans and their descendants until none is left. They are waited for together: a
    /// jail's init does not end before its leader is reaped. Shims that end meanwhile are added to
    /// `dead`.
    fn sweep(&mut self, dead: &mut Vec<(i32, u64)>) -> u32 {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let mut swept = BTreeSet::new();
        loop {
            let children = proc::children(own);
            let orphans: Vec<i32> = children
                .into_iter()
                .filter(|pid| !self.shims.contains_key(pid))
                .collect();
            if orphans.is_empty() {
                return u32::try_from(swept.len()).unwrap_or(u32::MAX);
            }
            for orphan in orphans {
                swept.insert(orphan);
                for pid in proc::descendants(orphan) {
                    if signals::kill(pid, libc::SIGKILL).is_ok() {
                        swept.insert(pid);
                    }
                }
                let _gone = signals::kill(orphan, libc::SIGKILL);
            }
            wait_any_child();
            while let ReapOutcome::Reaped(reaped) = wait::reap(-1) {
                if let Some(start) = self.shims.remove(&reaped.pid) {
                    self.end_slot(reaped.pid, start);
                    dead.push((reaped.pid, start));
                }
            }
        }
    }

    fn end_slot(&self, pid: i32, start: u64) {
        let _swept_below = self.cgroup_root.kill_slot(ShimName {
            pid,
            start,
            serial: 0,
        });
    }

    fn send(&self, message: &ZygoteEvent, descriptor: Option<OwnedFd>) {
        let Ok(bytes) = encode(message) else {
            return;
        };
        loop {
            let attached = descriptor.as_ref().map(AsFd::as_fd);
            match seqpacket::send(self.daemon.as_fd(), &bytes, attached) {
                Err(Errno::AGAIN) => {
                    let mut polled = [PollFd::new(&self.daemon, PollFlags::OUT)];
                    let _woken = rustix::event::poll(&mut polled, None);
                }
                Ok(()) | Err(_) => return,
            }
        }
    }
}
