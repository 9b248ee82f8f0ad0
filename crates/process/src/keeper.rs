//! The keeper: a small single-threaded process that forks shims and, as their nearest
//! subreaper, ends what a killed shim leaves behind.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};

use ostler_sandbox::cgroup::{ShimName, SlotOwner, Subtree};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::open_files;
use crate::proto::{FromKeeper, ToKeeper, decode, encode};
use crate::shim::{Identity, Mode, Setup, serve};
use crate::sys::packet::{self, Patience};
use crate::sys::role::{self, Forked};
use crate::sys::wait::{self, Waited};
use crate::sys::{proc, signals};

/// The one argument an executable is started with to become the keeper.
pub const KEEPER_ARGUMENT: &str = "__keeper";
/// Bytes of the largest message a daemon sends to a keeper.
const MESSAGE_BYTES: usize = 256;

/// The keeper's whole life: called first thing in `main`, before any thread, allocation of
/// size or descriptor of the caller's own, when the only argument is [`KEEPER_ARGUMENT`].
/// Descriptor 0 is a sequenced-packet socket to the daemon, descriptor 1 the directory of
/// executions. Ends when the daemon's end of the socket closes.
pub fn keeper_main() -> ! {
    role::set_name(role::KEEPER);
    signals::begin_role();
    // Out of the daemon's session: its terminal and its group's signals are not ours.
    let _leader_already = rustix::process::setsid();
    let _stays = rustix::process::chdir(c"/");
    let status = match Keeper::begin() {
        Ok(mut keeper) => {
            keeper.work();
            0
        }
        Err(error) => error.raw_os_error(),
    };
    role::leave(status)
}

/// Blocks until a child has ended, which stays to be reaped.
fn await_any() {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let _ended = rustix::io::retry_on_intr(|| waitid(WaitId::All, flags));
}

struct Keeper {
    daemon: OwnedFd,
    executions: OwnedFd,
    child_signal: OwnedFd,
    boot_id: String,
    subtree: Subtree,
    shims: HashMap<i32, u64>,
}

impl Keeper {
    fn begin() -> Result<Self, Errno> {
        let (daemon, executions) = role::take_start_descriptors()?;
        role::become_subreaper();
        let child_signal = signals::child_descriptor()?;
        let (subtree, abilities) = ostler_sandbox::probe(true);
        let subtree = subtree.owned_by(SlotOwner::of(executions.as_fd())?);
        let keeper = Self {
            daemon,
            executions,
            child_signal,
            boot_id: proc::boot_id(),
            subtree,
            shims: HashMap::new(),
        };
        keeper.tell(&FromKeeper::Hello { abilities }, None);
        // Before the first shim, but nobody waits for it: the kernel takes 10 ms and more to move
        // a process from one cgroup to another.
        keeper.subtree.adopt_self();
        keeper.subtree.remove_stale();
        Ok(keeper)
    }

    fn work(&mut self) {
        loop {
            let mut polled = [
                PollFd::new(&self.daemon, PollFlags::IN),
                PollFd::new(&self.child_signal, PollFlags::IN),
            ];
            if rustix::event::poll(&mut polled, None).is_err() {
                continue;
            }
            let [asked, died] = polled.map(|poll| !poll.revents().is_empty());
            if died {
                signals::drain(self.child_signal.as_fd());
                self.bury();
            }
            if asked && !self.answer() {
                return;
            }
        }
    }

    /// One request; false when the daemon is gone.
    fn answer(&mut self) -> bool {
        let mut buffer = [0; MESSAGE_BYTES];
        let received = packet::receive(&self.daemon, &mut buffer, Patience::Now);
        match received {
            Err(Errno::AGAIN) => true,
            Err(_) => false,
            Ok(packet) if packet.len == 0 => false,
            Ok(packet) => {
                if let Ok(ToKeeper::Fork { count }) = decode(&buffer[..packet.len]) {
                    open_files::raise_once();
                    for _ in 0..count {
                        self.fork_shim();
                    }
                }
                true
            }
        }
    }

    fn fork_shim(&mut self) {
        let forked = packet::pair().and_then(|pair| Ok((pair, role::fork()?)));
        match forked {
            Err(error) => {
                let errno = error.raw_os_error();
                self.tell(&FromKeeper::ForkFailed { errno }, None);
            }
            Ok(((daemons_end, shims_end), Forked::Child)) => {
                drop(daemons_end);
                self.become_shim(shims_end);
            }
            Ok(((daemons_end, shims_end), Forked::Parent(pid))) => {
                drop(shims_end);
                self.shims.insert(pid, proc::start_time(pid));
                let pid = pid.unsigned_abs();
                self.tell(&FromKeeper::Shim { pid }, Some(daemons_end));
            }
        }
    }

    /// The child's side of the fork: everything of the keeper's is given up.
    fn become_shim(&mut self, socket: OwnedFd) -> ! {
        role::set_name(role::SHIM);
        role::become_subreaper();
        let identity = Identity::own(Mode::Process, self.boot_id.clone());
        let mut slot = self.subtree.slot(identity.name(0));
        slot.hold_shim();
        let executions = self.executions.try_clone();
        role::close_beside(&mut [&mut self.daemon, &mut self.child_signal]);
        if let Ok(executions) = executions {
            serve(Setup {
                socket,
                executions,
                identity,
                slot: Some(slot),
            });
        }
        role::leave(0)
    }

    /// Reaps the dead. Whoever is a child here and no shim was orphaned by a killed shim, and
    /// is ended, with everything under it.
    fn bury(&mut self) {
        let mut dead = Vec::new();
        while let Waited::Reaped(reaped) = wait::reap(-1) {
            if let Some(start) = self.shims.remove(&reaped.pid) {
                dead.push((reaped.pid, start));
            }
        }
        for &(pid, start) in &dead {
            self.end_slot(pid, start);
        }
        let swept = self.sweep(&mut dead);
        for (pid, start) in dead {
            self.subtree.remove_slot(ShimName {
                pid,
                start,
                serial: 0,
            });
            let pid = pid.unsigned_abs();
            self.tell(&FromKeeper::ShimGone { pid, swept }, None);
        }
    }

    /// Kills orphans and what is under them until none is left. They are waited for together:
    /// a cell's warden does not end before its leader is reaped. Shims that end meanwhile are
    /// added to the dead.
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
            await_any();
            while let Waited::Reaped(reaped) = wait::reap(-1) {
                if let Some(start) = self.shims.remove(&reaped.pid) {
                    self.end_slot(reaped.pid, start);
                    dead.push((reaped.pid, start));
                }
            }
        }
    }

    fn end_slot(&self, pid: i32, start: u64) {
        let _swept_below = self.subtree.end_slot(ShimName {
            pid,
            start,
            serial: 0,
        });
    }

    fn tell(&self, message: &FromKeeper, descriptor: Option<OwnedFd>) {
        let Ok(bytes) = encode(message) else {
            return;
        };
        loop {
            let attached = descriptor.as_ref().map(AsFd::as_fd);
            match packet::send(self.daemon.as_fd(), &bytes, attached) {
                Err(Errno::AGAIN) => {
                    let mut polled = [PollFd::new(&self.daemon, PollFlags::OUT)];
                    let _woken = rustix::event::poll(&mut polled, None);
                }
                Ok(()) | Err(_) => return,
            }
        }
    }
}
