//! What a process of ours is: its name, its parentage, its fork.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::signals::last_errno;

/// The keeper's name in `ps` and `top`.
pub(crate) const ZYGOTE: &CStr = c"ostler-keeper";
/// A shim's name there.
pub(crate) const SHIM: &CStr = c"ostler-shim";
/// The init of a cell's pid namespace.
pub(crate) const INIT: &CStr = c"ostler-init";
/// A gate's name there.
pub(crate) const EGRESS: &CStr = c"ostler-gate";

/// Names this process for ps(1) and top(1).
pub(crate) fn set_name(name: &CStr) {
    let _named = rustix::thread::set_name(name);
}

/// Makes this process the parent of orphaned descendants.
pub(crate) fn become_subreaper() {
    let _set = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The old one, with the new one's pid.
    Parent(i32),
}

/// Forks this process, which must have one thread only.
pub(crate) fn fork() -> Result<Forked, Errno> {
    // SAFETY: the keeper is single-threaded (it is started first thing in main and creates no
    // threads), so the child may go on using the heap.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Ends this process at once, without destructors or exit handlers of the starter's.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Closes descriptors that a forked process shares with its parent and must not hold, by
/// putting `/dev/null` in their places.
pub(crate) fn replace_with_null(descriptors: &mut [&mut OwnedFd]) {
    for descriptor in descriptors {
        if let Ok(null) = rustix::fs::open(
            c"/dev/null",
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        ) {
            **descriptor = null;
        }
    }
}

/// Takes the descriptors this process was started with away from 0 and 1, which then refer to
/// `/dev/null` like 2, and closes every other one.
pub(crate) fn take_inherited_descriptors() -> Result<(OwnedFd, OwnedFd), Errno> {
    let move_up = |number| {
        // SAFETY: F_DUPFD_CLOEXEC returns a fresh descriptor or -1.
        unsafe {
            let fresh = libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3);
            if fresh < 0 {
                return Err(last_errno());
            }
            Ok(OwnedFd::from_raw_fd(fresh))
        }
    };
    // SAFETY: closing what was inherited beyond standard streams; nobody in this process
    // that has just begun owns any of them.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    let first = move_up(0)?;
    let second = move_up(1)?;
    let null = rustix::fs::open(
        c"/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    for number in 0..3 {
        // SAFETY: replaces standard streams; dup2 clears close-on-exec on the copy.
        unsafe { libc::dup2(null.as_raw_fd(), number) };
    }
    Ok((first, second))
}
