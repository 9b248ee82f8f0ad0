//! The init of a jail: makes system calls on data prepared before, because it may be a copy of a
//! process that has threads.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use ostler_sys::{process_role, signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::mount_exec::{InitFailure, InitStage, MountExecutor};
use super::mount_op::{BindSource, MountOp};
use super::sys;

/// The builder's message that the id maps are written, and its message that the leader ended.
pub(super) const START: u8 = b'G';
pub(super) const LEADER_EXITED: u8 = b'L';
/// Its name in `ps` and `top`.
const NAME: &std::ffi::CStr = c"ostler-init";

/// What an init needs, prepared by its builder.
pub(super) struct InitTask<'a> {
    pub(super) control: BorrowedFd<'a>,
    pub(super) ops: &'a [MountOp],
    pub(super) sources: &'a [BindSource],
    /// Mounts the builder cloned itself; in the order of `sources`.
    pub(super) trees: &'a [Option<OwnedFd>],
    /// Descriptors to keep, in ascending order.
    pub(super) keep_fds: &'a [RawFd],
    /// The inside ids to take, where they are not the caller's.
    pub(super) become_ids: Option<(u32, u32)>,
    /// The command's inside ids.
    pub(super) command_ids: (u32, u32),
    /// The indices of the terminal and the overlay's layers among the sources.
    pub(super) terminal: Option<usize>,
    pub(super) layers: Option<super::build::LayerSource<'a>>,
    pub(super) dies_with_parent: bool,
}

/// Runs the init; never returns.
pub(super) fn run(task: &InitTask<'_>) -> ! {
    let _named = rustix::thread::set_name(NAME);
    rustix::process::umask(rustix::fs::Mode::empty());
    sys::close_fds_except(task.keep_fds);
    let mut byte = [0_u8];
    if rustix::io::read(task.control, &mut byte) != Ok(1) || byte[0] != START {
        process_role::exit_now(1);
    }
    let done = build_root(task);
    let reply = match &done {
        Ok(()) => [0; 12],
        Err(failed) => failed.to_bytes(),
    };
    let sent = rustix::io::write(task.control, &reply);
    if done.is_err() || sent.is_err() {
        process_role::exit_now(1);
    }
    sys::close_fds_except(&[task.control.as_raw_fd()]);
    reap_until_empty(task.control)
}

fn build_root(task: &InitTask<'_>) -> Result<(), InitFailure> {
    let mut executor = MountExecutor::new(task);
    executor.clone_sources()?;
    switch_ids(task).map_err(|errno| InitFailure::new(InitStage::Ids, 0, errno))?;
    executor.create_root()?;
    for (index, step) in task.ops.iter().enumerate() {
        executor
            .execute(step)
            .map_err(|errno| InitFailure::new(InitStage::Mount, index, errno))?;
    }
    executor.pivot()?;
    clear_effective_capabilities()
        .map_err(|errno| InitFailure::new(InitStage::Capabilities, 0, errno))
}

/// Takes the inside ids: nothing of the caller's identity is left where it was root's. The
/// parent-death signal is set last, because changing ids clears it.
fn switch_ids(task: &InitTask<'_>) -> Result<(), Errno> {
    if let Some((uid, gid)) = task.become_ids {
        let (uid, gid) = (
            rustix::process::Uid::from_raw(uid),
            rustix::process::Gid::from_raw(gid),
        );
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    }
    // Entering by our descriptor asks whether we may be traced, which changing ids took away.
    // The commands may not: they lack the capabilities that this process keeps.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    if task.dies_with_parent {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    Ok(())
}

/// Clears the effective capabilities. They stay permitted, because that is what keeps a command
/// with the same ids from tracing this process or reading its memory (capabilities(7), ptrace(2)).
fn clear_effective_capabilities() -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)?;
    let permitted = rustix::thread::capabilities(None)?.permitted;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted,
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Reaps orphans until the builder is gone, or has announced that the leader ended and nothing is
/// left.
fn reap_until_empty(control: BorrowedFd<'_>) -> ! {
    let Ok(children) = signals::sigchld_fd() else {
        process_role::exit_now(1);
    };
    let mut leader_exited = false;
    loop {
        let mut both = [
            PollFd::from_borrowed_fd(control, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        if poll(&mut both, None).is_err() {
            continue;
        }
        let (control_ready, child_exited) =
            (!both[0].revents().is_empty(), !both[1].revents().is_empty());
        if control_ready {
            let mut byte = [0_u8];
            if rustix::io::read(control, &mut byte) != Ok(1) || byte[0] != LEADER_EXITED {
                process_role::exit_now(0);
            }
            leader_exited = true;
        }
        if child_exited {
            signals::drain_signalfd(std::os::fd::AsFd::as_fd(&children));
        }
        if !sys::reap_orphans() && leader_exited {
            process_role::exit_now(0);
        }
    }
}
