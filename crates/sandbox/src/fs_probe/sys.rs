//! System calls without a wrapper, and children that make them in namespaces of their own.
//!
//! The children are forked from the calling process, which may have many threads: they make system
//! calls on values prepared before, and nothing else.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use libc::{c_int, c_long, c_uint};

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

const OPEN_TREE_CLONE: c_uint = 1;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
const FSCONFIG_SET_FLAG: c_uint = 0;
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_CMD_CREATE: c_uint = 6;

/// The numbers of the descriptors of the two directories of an overlay in the child, so that their
/// names are known before it is spawned: higher than any descriptor it needs otherwise.
const LOWER: RawFd = 1000;
const UPPER_DIRS: RawFd = 1001;

/// Creates a detached mount of a directory.
pub(super) fn clone_mount(directory: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let at_cloexec = libc::AT_EMPTY_PATH.unsigned_abs() | libc::O_CLOEXEC.unsigned_abs();
    // SAFETY: the empty path outlives the call; the descriptor is borrowed for it.
    let mount = unsafe {
        libc::syscall(
            libc::SYS_open_tree,
            directory.as_raw_fd(),
            c"".as_ptr(),
            OPEN_TREE_CLONE | at_cloexec,
        )
    };
    let mount = into_fd(mount)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(mount) })
}

/// Gives a detached mount the ids of a user namespace.
pub(super) fn map_ids(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let attributes = MountAttr {
        attr_set: MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::from(user_namespace.as_raw_fd().unsigned_abs()),
    };
    // SAFETY: path and attributes outlive the call, which reads the size given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    into_fd(done).map(drop)
}

/// Creates a user namespace whose maps `map` writes, given the `/proc` directory of a process in
/// it.
pub(super) fn user_namespace(map: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<OwnedFd> {
    let (ready, ready_writer) = pipe()?;
    let (release, release_writer) = pipe()?;
    let (ready_fd, release_fd) = (ready_writer.as_raw_fd(), release.as_raw_fd());
    let keep_open = release_writer.as_raw_fd();
    // SAFETY: the closure makes system calls on numbers only.
    let child = unsafe {
        fork(|| {
            libc::close(keep_open);
            if libc::unshare(libc::CLONE_NEWUSER) < 0 {
                return errno();
            }
            // One byte says that the child is ready; the end of the other pipe, that it may exit.
            let mut byte = 0_u8;
            libc::write(ready_fd, (&raw const byte).cast(), 1);
            libc::read(release_fd, (&raw mut byte).cast(), 1);
            0
        })
    }?;
    drop((ready_writer, release));
    let entered = rustix::io::read(&ready, &mut [0_u8; 1])? == 1;
    let namespace = if entered {
        let process = Path::new("/proc").join(child.to_string());
        map(&process).and_then(|()| Ok(std::fs::File::open(process.join("ns/user"))?.into()))
    } else {
        Err(io::ErrorKind::Other.into())
    };
    drop(release_writer);
    reap(child)?;
    namespace
}

/// An overlay to be mounted and discarded.
pub(super) struct OverlayCheck<'a> {
    /// The user namespace to mount it in.
    pub(super) user_namespace: BorrowedFd<'a>,
    /// The lower layer, and the directory of the upper and the work directory.
    pub(super) paths: [CString; 2],
    /// Detached mounts of the same, used instead where given.
    pub(super) mounts: Option<[BorrowedFd<'a>; 2]>,
}

/// Mounts it in a child in a mount namespace of its own.
pub(super) fn try_overlay(overlay: &OverlayCheck<'_>) -> io::Result<()> {
    // SAFETY: the closure makes system calls on values of `overlay`, which outlives it.
    let child = unsafe {
        fork(|| match enter(overlay).and_then(|()| mount_overlay()) {
            Ok(()) => 0,
            Err(errno) => errno,
        })
    }?;
    reap(child)
}

/// In the child: enters both namespaces, takes the ids of their owner, and puts both directories at
/// their numbers.
fn enter(overlay: &OverlayCheck<'_>) -> Result<(), c_int> {
    let namespace = overlay.user_namespace.as_raw_fd();
    // SAFETY: numbers and strings that outlive the calls.
    unsafe {
        check(libc::setns(namespace, libc::CLONE_NEWUSER))?;
        if overlay.mounts.is_some() {
            // Root outside has no id inside until it sets one.
            check_long(libc::syscall(libc::SYS_setgroups, 0_usize, 0_usize))?;
            check_long(libc::syscall(libc::SYS_setresgid, 0, 0, 0))?;
            check_long(libc::syscall(libc::SYS_setresuid, 0, 0, 0))?;
        }
        check(libc::unshare(libc::CLONE_NEWNS))?;
    }
    let paths = [overlay.paths[0].as_c_str(), overlay.paths[1].as_c_str()];
    let paths = match overlay.mounts {
        Some(mounts) => attach(mounts)?,
        None => paths,
    };
    for (path, number) in paths.into_iter().zip([LOWER, UPPER_DIRS]) {
        // SAFETY: the path outlives the call; the numbers are this child's own.
        unsafe {
            let opened = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
            check(opened)?;
            check(libc::dup2(opened, number))?;
        }
    }
    Ok(())
}

/// In the child: attaches the mounts, because overlays accept only mounts of their own namespace.
fn attach(mounts: [BorrowedFd<'_>; 2]) -> Result<[&'static CStr; 2], c_int> {
    let targets = [c"/tmp/lower", c"/tmp/sides"];
    // SAFETY: strings and numbers that outlive the calls.
    unsafe {
        let tmpfs = c"tmpfs".as_ptr();
        let nothing = std::ptr::null();
        check(libc::mount(tmpfs, c"/tmp".as_ptr(), tmpfs, 0, nothing))?;
        for (mount, place) in mounts.into_iter().zip(targets) {
            check(libc::mkdir(place.as_ptr(), 0o700))?;
            check_long(libc::syscall(
                libc::SYS_move_mount,
                mount.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                place.as_ptr(),
                MOVE_MOUNT_F_EMPTY_PATH,
            ))?;
        }
    }
    Ok(targets)
}

/// In the child.
fn mount_overlay() -> Result<(), c_int> {
    let options = [
        (c"lowerdir", c"/proc/self/fd/1000"),
        (c"upperdir", c"/proc/self/fd/1001/upper"),
        (c"workdir", c"/proc/self/fd/1001/work"),
        (c"xino", c"off"),
    ];
    // SAFETY: strings of the program and numbers.
    unsafe {
        let made = libc::syscall(libc::SYS_fsopen, c"overlay".as_ptr(), 0 as c_uint);
        let overlay = check_long(made)?;
        let configure = |command: c_uint, key: *const i8, value: *const i8| {
            check_long(libc::syscall(
                libc::SYS_fsconfig,
                overlay,
                command,
                key,
                value,
                0 as c_int,
            ))
        };
        let nothing = std::ptr::null();
        for (key, value) in options {
            configure(FSCONFIG_SET_STRING, key.as_ptr(), value.as_ptr())?;
        }
        configure(FSCONFIG_SET_FLAG, c"userxattr".as_ptr(), nothing)?;
        configure(FSCONFIG_CMD_CREATE, nothing, nothing)?;
        let flags: c_uint = 0;
        check_long(libc::syscall(libc::SYS_fsmount, overlay, flags, flags))?;
    }
    Ok(())
}

/// Forks a child that runs `work` and exits with its result.
///
/// # Safety
/// `work` must make system calls on prepared values only: other threads may have held any lock when
/// the child was forked.
unsafe fn fork(work: impl FnOnce() -> c_int) -> io::Result<c_int> {
    // SAFETY: the child runs `work`, fit for it by the caller's promise, and ends.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(work() & 0xff),
            child if child < 0 => Err(io::Error::last_os_error()),
            child => Ok(child),
        }
    }
}

/// Waits for a child; its exit status is an errno.
fn reap(child: c_int) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: the out-pointer is valid; `child` is a child of this process.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(()),
        (true, errno) => Err(io::Error::from_raw_os_error(errno)),
        (false, _) => Err(io::ErrorKind::Interrupted.into()),
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

fn into_fd(done: c_long) -> io::Result<c_int> {
    check_long(done)
        .map(|done| c_int::try_from(done).unwrap_or_default())
        .map_err(io::Error::from_raw_os_error)
}

fn check(done: c_int) -> Result<c_long, c_int> {
    check_long(c_long::from(done))
}

fn check_long(done: c_long) -> Result<c_long, c_int> {
    if done < 0 { Err(errno()) } else { Ok(done) }
}

fn errno() -> c_int {
    // SAFETY: the C library gives every thread a place for its last error.
    unsafe { *libc::__errno_location() }
}
