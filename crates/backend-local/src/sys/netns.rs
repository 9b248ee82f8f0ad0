//! Sockets of other network namespaces.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use ostler_sys::errno::last_errno;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The network namespace of a process, by its inode; none where it may not be inspected.
pub(crate) fn netns_of(pid: i32) -> Option<u64> {
    namespace_inode(&format!("/proc/{pid}/ns/net"))
}

/// The namespace of this process, which it never leaves.
pub(crate) fn own_netns() -> Option<u64> {
    static READ: OnceLock<Option<u64>> = OnceLock::new();
    *READ.get_or_init(|| namespace_inode("/proc/self/ns/net"))
}

fn namespace_inode(link: &str) -> Option<u64> {
    Some(fs::metadata(link).ok()?.ino())
}

/// The arguments of socket(2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketKind {
    pub(crate) family: AddressFamily,
    pub(crate) kind: SocketType,
    pub(crate) protocol: Option<Protocol>,
}

/// Creates a socket in the network namespace of a process, which may also be in another user
/// namespace. It stays there wherever it is used. Created by a child that shares our descriptors:
/// to enter a user namespace a process must have a single thread, and this one must not enter any.
///
/// # Errors
/// When the process is gone, or its namespaces may not be entered (setns(2)).
pub(crate) fn socket_in_netns(pid: i32, socket_kind: &SocketKind) -> Result<OwnedFd, Errno> {
    let process = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    let pidfd = pidfd_open(process, PidfdFlags::empty())?;
    let user = |who: &str| namespace_inode(&format!("/proc/{who}/ns/user"));
    let namespaces = if user(&pid.to_string()) == user("thread-self") {
        libc::CLONE_NEWNET
    } else {
        libc::CLONE_NEWNET | libc::CLONE_NEWUSER
    };
    // A descriptor number that the child replaces with its socket.
    let flags = SocketFlags::CLOEXEC;
    let target_fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let task = SocketTask {
        pidfd: pidfd.as_raw_fd(),
        namespaces,
        socket: [
            i32::from(socket_kind.family.as_raw()),
            socket_kind.kind.as_raw().cast_signed() | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            socket_kind
                .protocol
                .map_or(0, |it| it.as_raw().get().cast_signed()),
        ],
        target_fd: target_fd.as_raw_fd(),
    };
    match run_in_child(&task)? {
        0 => Ok(target_fd),
        errno => Err(Errno::from_raw_os_error(errno)),
    }
}

/// The arguments of the child, in numbers.
#[derive(Debug)]
struct SocketTask {
    pidfd: i32,
    namespaces: i32,
    socket: [i32; 3],
    target_fd: i32,
}

/// Runs the task in a child and returns its exit status: an error number or 0.
fn run_in_child(task: &SocketTask) -> Result<i32, Errno> {
    // No exit signal: nothing else waits for it.
    let flags = libc::CLONE_FILES;
    // SAFETY: without CLONE_VM the child has a copy of this thread's memory and stack; it makes
    // system calls on numbers only and leaves, whatever locks other threads held.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid == 0 {
        // SAFETY: in the child, as above; _exit never returns.
        unsafe { libc::_exit(child_main(task)) }
    }
    let pid = i32::try_from(pid).map_err(|_| Errno::OVERFLOW)?;
    if pid < 0 {
        return Err(last_errno());
    }
    let mut status = 0;
    // SAFETY: the out-pointer is valid; a child without a signal is waited for by __WALL.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } < 0 {
        let error = last_errno();
        if error != Errno::INTR {
            return Err(error);
        }
    }
    if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status))
    } else {
        Err(Errno::INTR)
    }
}

/// The child: system calls only.
fn child_main(task: &SocketTask) -> i32 {
    let [family, kind, protocol] = task.socket;
    // SAFETY: numbers in, numbers out; the descriptors are open, as the caller waits for us.
    unsafe {
        if libc::setns(task.pidfd, task.namespaces) < 0 {
            return *libc::__errno_location();
        }
        let socket = libc::socket(family, kind, protocol);
        if socket < 0 || libc::dup3(socket, task.target_fd, libc::O_CLOEXEC) < 0 {
            return *libc::__errno_location();
        }
        libc::close(socket);
    }
    0
}
