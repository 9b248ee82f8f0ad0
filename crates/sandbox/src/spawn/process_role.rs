//! Process attributes of the roles that one executable takes on: name, subreaper, inherited
//! descriptors; fork(2) and _exit(2) for processes with a single thread.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::signals::last_errno;

/// Names this process for ps(1) and top(1).
pub fn set_name(name: &CStr) {
    let _named = rustix::thread::set_name(name);
}

/// Makes this process the parent of orphaned descendants.
pub fn become_subreaper() {
    let _set = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The side of a fork.
#[derive(Debug)]
pub enum Forked {
    /// The new process.
    Child,
    /// The parent, with the child's pid.
    Parent(i32),
}

/// Forks this process, which must have one thread only.
///
/// # Errors
/// As fork(2).
pub fn fork() -> Result<Forked, Errno> {
    // SAFETY: the keeper is single-threaded (it is started first thing in main and creates no
    // threads), so the child may go on using the heap.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Ends this process at once, without destructors or exit handlers of the starter's.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Closes descriptors that a forked process shares with its parent and must not hold, by
/// putting `/dev/null` in their places.
pub fn replace_with_null(descriptors: &mut [&mut OwnedFd]) {
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
///
/// # Errors
/// As fcntl(2) with `F_DUPFD_CLOEXEC`, for example when 0 or 1 is closed; as open(2).
pub fn take_inherited_descriptors() -> Result<(OwnedFd, OwnedFd), Errno> {
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
