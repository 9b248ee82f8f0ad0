//! Process attributes of the roles that one executable takes on: name, subreaper, inherited
//! descriptors; fork(2), unshare(2) and _exit(2) for processes with a single thread.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::errno::last_errno;

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
    // SAFETY: the zygote is single-threaded (it is started first in main and creates no threads),
    // so the child may continue to use the heap.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Moves this process, which must have one thread only, into a network namespace of its own.
///
/// # Errors
/// As unshare(2).
pub fn unshare_network() -> Result<(), Errno> {
    // SAFETY: a new network namespace changes nothing that any object of this single-threaded
    // process relies on; descriptors are kept.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
}

/// Ends this process at once, without destructors or exit handlers of the starter's.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of this program.
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
    // SAFETY: closes inherited descriptors beyond the standard streams; the process has just
    // started, so nothing in it owns any of them.
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_thread_gets_a_name_and_a_descriptor_becomes_the_null_device() {
        super::set_name(c"role-test");
        let name = std::fs::read_to_string("/proc/thread-self/comm").expect("proc(5)");
        assert_eq!(name, "role-test\n");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut shared = OwnedFd::from(writer);
        super::replace_with_null(&mut [&mut shared]);
        let mut text = Vec::new();
        std::fs::File::from(OwnedFd::from(reader))
            .read_to_end(&mut text)
            .expect("no writer is left");
        assert!(text.is_empty());
    }
}
