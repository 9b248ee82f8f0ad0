//! The warden's life: system calls on data prepared before, because it may be a copy of a
//! process that has threads.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::interpret::{Failed, Stage, View};
use super::step::{Source, Step};
use super::sys;
use crate::birth::signals;

/// What the builder says when maps are written; then what it says when the leader ended.
pub(super) const GO: u8 = b'G';
pub(super) const LEFT: u8 = b'L';
/// Its name in `ps` and `top`.
const NAME: &std::ffi::CStr = c"ostler-init";

/// Everything a warden needs, prepared by its builder.
pub(super) struct Work<'a> {
    pub(super) control: BorrowedFd<'a>,
    pub(super) steps: &'a [Step],
    pub(super) sources: &'a [Source],
    /// Trees the builder took itself; the same order as `sources`.
    pub(super) held: &'a [Option<OwnedFd>],
    /// Descriptors to keep, in ascending order.
    pub(super) kept: &'a [RawFd],
    /// Inside ids to become, where they are not the caller's.
    pub(super) ids: Option<(u32, u32)>,
    /// The command's inside ids.
    pub(super) owner: (u32, u32),
    /// Which sources are the terminal and the overlay's layers.
    pub(super) terminal: Option<usize>,
    pub(super) layers: Option<super::build::Layers<'a>>,
    pub(super) dies_with_parent: bool,
}

/// Never returns.
pub(super) fn live(work: &Work<'_>) -> ! {
    let _named = rustix::thread::set_name(NAME);
    rustix::process::umask(rustix::fs::Mode::empty());
    sys::close_all_but(work.kept);
    let mut byte = [0_u8];
    if rustix::io::read(work.control, &mut byte) != Ok(1) || byte[0] != GO {
        sys::leave(1);
    }
    let done = build(work);
    let verdict = match &done {
        Ok(()) => [0; 12],
        Err(failed) => failed.to_bytes(),
    };
    let told = rustix::io::write(work.control, &verdict);
    if done.is_err() || told.is_err() {
        sys::leave(1);
    }
    sys::close_all_but(&[work.control.as_raw_fd()]);
    wait(work.control)
}

fn build(work: &Work<'_>) -> Result<(), Failed> {
    let mut view = View::new(work);
    view.take_sources()?;
    become_inside(work).map_err(|errno| Failed::at(Stage::Ids, 0, errno))?;
    view.new_root()?;
    for (index, step) in work.steps.iter().enumerate() {
        view.carry_out(step)
            .map_err(|errno| Failed::at(Stage::Step, index, errno))?;
    }
    view.pivot()?;
    put_capabilities_away().map_err(|errno| Failed::at(Stage::Capabilities, 0, errno))
}

/// From here on nothing of the caller's identity is left where it was root's. What ends this
/// process with its builder is set last: changing ids forgets it.
fn become_inside(work: &Work<'_>) -> Result<(), Errno> {
    if let Some((uid, gid)) = work.ids {
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
    if work.dies_with_parent {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    Ok(())
}

/// None can be used any more. They stay permitted, because that is what keeps a command with
/// the same ids from tracing this process or reading its memory (capabilities(7), ptrace(2)).
fn put_capabilities_away() -> Result<(), Errno> {
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

/// Reaps orphans until the builder is gone, or has said that the leader ended and nothing is
/// left.
fn wait(control: BorrowedFd<'_>) -> ! {
    let Ok(children) = signals::child_descriptor() else {
        sys::leave(1);
    };
    let mut left = false;
    loop {
        let mut both = [
            PollFd::from_borrowed_fd(control, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        if poll(&mut both, None).is_err() {
            continue;
        }
        let (told, ended) = (!both[0].revents().is_empty(), !both[1].revents().is_empty());
        if told {
            let mut byte = [0_u8];
            if rustix::io::read(control, &mut byte) != Ok(1) || byte[0] != LEFT {
                sys::leave(0);
            }
            left = true;
        }
        if ended {
            signals::drain(std::os::fd::AsFd::as_fd(&children));
        }
        if !sys::reap_orphans() && left {
            sys::leave(0);
        }
    }
}
