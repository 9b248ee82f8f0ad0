//! System calls without a wrapper in rustix. All are safe in a child that shares only prepared
//! data: no allocation, no locks.

use std::ffi::CStr;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use ostler_sys::errno::last_errno;
use rustix::io::Errno;

use crate::clone_args::CloneArgs;

pub(crate) const ATTR_READ_ONLY: u64 = 0x1;
pub(crate) const ATTR_NO_SETUID: u64 = 0x2;
pub(crate) const ATTR_NO_DEVICES: u64 = 0x4;
const ATTR_IDMAP: u64 = 0x0010_0000;
const AT_EMPTY_PATH: libc::c_uint = 0x1000;
const AT_RECURSIVE: libc::c_uint = 0x8000;
const MS_PRIVATE: u64 = 1 << 18;

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
#[derive(Default)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn mount_setattr(
    directory: RawFd,
    path: &CStr,
    flags: libc::c_uint,
    attributes: &MountAttributes,
) -> Result<(), Errno> {
    // SAFETY: path and attributes live through the call, which reads no more than their size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags,
            ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    if done < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Sets attributes of a mount and all below it; `ids` maps it to a user namespace's ids.
pub(crate) fn set_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    ids: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let ids = ids.map(|it| it.as_raw_fd().unsigned_abs().into());
    let attributes = MountAttributes {
        set: attributes | if ids.is_some() { ATTR_IDMAP } else { 0 },
        user_namespace: ids.unwrap_or(0),
        ..MountAttributes::default()
    };
    mount_setattr(
        mount.as_raw_fd(),
        c"",
        AT_EMPTY_PATH | AT_RECURSIVE,
        &attributes,
    )
}

/// Makes all mounts private: mounts made elsewhere do not propagate here any more.
pub(crate) fn make_all_private() -> Result<(), Errno> {
    let attributes = MountAttributes {
        propagation: MS_PRIVATE,
        ..MountAttributes::default()
    };
    mount_setattr(libc::AT_FDCWD, c"/", AT_RECURSIVE, &attributes)
}

/// Closes every descriptor except these, which are in ascending order.
pub(crate) fn close_fds_except(keep: &[RawFd]) {
    let mut first = 0_u32;
    for descriptor in keep {
        let descriptor = descriptor.unsigned_abs();
        if descriptor > first {
            close_range(first, descriptor - 1);
        }
        first = descriptor + 1;
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: called by a process that has just been cloned, for descriptors that no value of
    // it will use or close.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
}

/// A clone3(2) that copies memory, like fork(2): returns none in the child, its pid in the parent.
///
/// # Safety
/// Unless the process has one thread, the child may only make system calls on prepared data.
pub(crate) unsafe fn clone3_fork(arguments: &CloneArgs) -> Result<Option<i32>, Errno> {
    // SAFETY: the arguments are valid during the call; without a stack and without CLONE_VM both
    // processes continue here, each with its own memory.
    let done = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_ref(arguments),
            size_of::<CloneArgs>(),
        )
    };
    match i32::try_from(done) {
        Ok(0) => Ok(None),
        Ok(pid) if pid > 0 => Ok(Some(pid)),
        Ok(_) | Err(_) => Err(last_errno()),
    }
}

/// Waits until a child has ended that sends no exit signal.
pub(crate) fn wait_child(pid: i32) {
    let mut status = 0;
    // SAFETY: the out-pointer is valid.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } < 0 {
        if last_errno() != Errno::INTR {
            return;
        }
    }
}

/// Reaps ended children; true while any child runs.
pub(crate) fn reap_orphans() -> bool {
    let mut status = 0;
    loop {
        // SAFETY: the out-pointer is valid.
        let found = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if found == 0 {
            return true;
        }
        if found < 0 && last_errno() != Errno::INTR {
            return false;
        }
    }
}

/// `struct ifreq`, as far as interface flags need it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Brings the loopback interface up; the kernel adds its addresses.
pub(crate) fn bring_up_loopback() -> Result<(), Errno> {
    // SAFETY: socket(2) returns a fresh descriptor or -1.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(last_errno());
        }
        OwnedFd::from_raw_fd(socket)
    };
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0),
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    // SAFETY: the request is as large as the kernel's and lives through the call.
    let done = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            ptr::from_ref(&request),
        )
    };
    if done < 0 { Err(last_errno()) } else { Ok(()) }
}
