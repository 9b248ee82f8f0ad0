//! Spawn: one clone3(2) that shares memory until exec(2), so that its cost does not grow with
//! the size of the process that calls it.
//!
//! Between clone and exec the child runs on a stack of its own in its parent's memory while
//! the calling thread is suspended. It may therefore neither allocate nor take locks nor
//! unwind: [`super::child`] makes system calls on data prepared before, and nothing else.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use ostler_sys::signals;
use rustix::io::Errno;
use rustix::process::DumpableBehavior;

use super::child::{child_main, enter_jail_main};
use super::memory::Pages;
use super::wait;
use crate::clone_args::CloneArgs;
use crate::{Jail, Restrictions};

/// The size of the child's stack in bytes; it touches one or two pages of it.
pub const STACK_BYTES: usize = 64 * 1024;

const CLONE_VM: u64 = 0x100;
const CLONE_FILES: u64 = 0x400;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// What clone3(2) returns where the kernel or a filter does not have it.
const NOT_IMPLEMENTED: i64 = -(libc::ENOSYS as i64);

/// A null-terminated array of C strings, as execve(2) requires.
#[derive(Debug)]
pub struct CArray {
    _owned: Vec<CString>,
    pub(super) pointers: Vec<*const c_char>,
}

impl CArray {
    /// Keeps the strings together with pointers to them.
    pub fn new(owned: Vec<CString>) -> Self {
        let strings = owned.iter().map(|string| string.as_ptr());
        let pointers = strings.chain(std::iter::once(ptr::null())).collect();
        Self {
            _owned: owned,
            pointers,
        }
    }
}

/// The expected identity of a program's file; a difference fails at the step [`SpawnStep::Exec`]
/// with `ESTALE`. It is compared through the descriptor that is executed, while a lease keeps
/// writers away where the file system grants one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedFile {
    /// Its device and inode number, where both are known.
    pub dev_ino: Option<(u64, u64)>,
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// Its change time, in seconds and nanoseconds.
    pub ctime: (i64, i64),
}

/// What a child is spawned with.
#[derive(Debug)]
pub struct SpawnSpec<'a> {
    /// The file to execute.
    pub program: &'a CStr,
    /// The expected identity of that file.
    pub expected: Option<&'a ExpectedFile>,
    /// Its arguments, including the zeroth.
    pub argv: &'a CArray,
    /// Its whole environment, `NAME=value`.
    pub env: &'a CArray,
    /// The directory it starts in.
    pub cwd: &'a CStr,
    /// The child's descriptors 0, 1 and 2; each of these numbers is 3 or more.
    pub stdio: [BorrowedFd<'a>; 3],
    /// Whether descriptor 0 is a terminal that becomes the controlling terminal of a new session.
    pub terminal: bool,
    /// Whether it leads a new session also without a terminal, and not only a process group. A leader
    /// gets the first terminal that it opens as its controlling terminal, and stop signals of
    /// terminals do not stop it, since no parent in its session could let it go on (setpgid(2)).
    pub leads_session: bool,
    /// `cgroup.procs` files to join before exec.
    pub cgroup_procs: &'a [BorrowedFd<'a>],
    /// A directory of the unified hierarchy to spawn into.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// Whether it is killed when the thread that spawns it ends (prctl(2), `PR_SET_PDEATHSIG`).
    pub dies_with_parent: bool,
    /// Signals that may be ignored in this process and must not be in the child.
    pub reset_signals: &'a [c_int],
    /// The child's soft limit on open files, where it differs from the caller's.
    pub soft_open_files: Option<u64>,
    /// Limits to lower.
    pub rlimits: &'a [(c_int, u64)],
    /// The jail to spawn into.
    pub jail: Option<&'a Jail>,
    /// The restrictions to apply before exec.
    pub restrictions: Option<&'a Restrictions>,
}

/// A child that runs its program.
#[derive(Debug)]
pub struct SpawnedChild {
    /// Its pid, in the parent's pid namespace.
    pub pid: i32,
    /// Its pidfd.
    pub pidfd: OwnedFd,
}

/// The step at which a spawn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum SpawnStep {
    /// clone3(2) itself.
    Clone,
    /// setsid(2) or setpgid(2).
    Session,
    /// Joining a cgroup.
    Cgroup,
    /// dup2(2) of standard streams.
    Stdio,
    /// Taking the controlling terminal.
    Terminal,
    /// Entering the jail.
    EnterJail,
    /// Taking the jail's ids.
    SetIds,
    /// chdir(2).
    Chdir,
    /// setrlimit(2).
    Limits,
    /// Dropping capabilities, no_new_privs, Landlock, seccomp.
    Restrictions,
    /// execve(2).
    Exec,
}

const SPAWN_STEPS: [SpawnStep; 11] = [
    SpawnStep::Clone,
    SpawnStep::Session,
    SpawnStep::Cgroup,
    SpawnStep::Stdio,
    SpawnStep::Terminal,
    SpawnStep::EnterJail,
    SpawnStep::SetIds,
    SpawnStep::Chdir,
    SpawnStep::Limits,
    SpawnStep::Restrictions,
    SpawnStep::Exec,
];

impl SpawnStep {
    /// Its name in exit records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Session => "setsid",
            Self::Cgroup => "cgroup",
            Self::Stdio => "stdio",
            Self::Terminal => "terminal",
            Self::EnterJail => "enter cell",
            Self::SetIds => "inside ids",
            Self::Chdir => "chdir",
            Self::Limits => "limits",
            Self::Restrictions => "restrictions",
            Self::Exec => "exec",
        }
    }
}

/// A spawn that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnStepError {
    /// The step that failed.
    pub step: SpawnStep,
    /// The error number.
    pub errno: Errno,
}

/// What parent and child share: the specification, resolved to plain numbers, and where the child
/// reports its failure.
pub(super) struct ChildContext<'a> {
    pub(super) spec: &'a SpawnSpec<'a>,
    pub(super) stdio: [RawFd; 3],
    /// The arguments with which the intermediate child clones the command.
    pub(super) command_clone: CloneArgs,
    /// The command's pid, as the intermediate child received it.
    pub(super) pid: AtomicI32,
    pub(super) step: AtomicI32,
    pub(super) errno: AtomicI32,
}

/// Spawns a child. Returns when the program runs or could not be run.
///
/// Into a jail it takes two clones: the first enters the jail's namespaces, which changes nothing
/// but the pid namespace of its children; the second is the command, created with `CLONE_PARENT`,
/// so that the caller is still its parent. They share the caller's memory one after the other, each
/// on its own half of the stack.
///
/// # Errors
/// The step that failed; the child is reaped then.
pub fn spawn(spec: &SpawnSpec<'_>, stack: &mut Pages) -> Result<SpawnedChild, SpawnStepError> {
    let mut pidfd: c_int = -1;
    let into = spec.cgroup.map_or(0, |_| CLONE_INTO_CGROUP);
    let bottom = stack.as_mut_slice().as_mut_ptr() as u64;
    let top = stack.top() as u64;
    let middle = bottom + (top - bottom) / 2;
    let common = CLONE_VM | CLONE_VFORK;
    let shared = ChildContext {
        spec,
        stdio: spec.stdio.map(|descriptor| descriptor.as_raw_fd()),
        command_clone: CloneArgs {
            // Its exit signal is that of the process that clones it.
            flags: common | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_PARENT,
            pidfd: ptr::from_mut(&mut pidfd) as u64,
            stack: bottom,
            stack_size: middle - bottom,
            ..CloneArgs::default()
        },
        pid: AtomicI32::new(0),
        step: AtomicI32::new(0),
        errno: AtomicI32::new(0),
    };
    let first_clone = CloneArgs {
        flags: common | CLONE_CLEAR_SIGHAND | into,
        exit_signal: libc::SIGCHLD as u64,
        stack: middle,
        stack_size: top - middle,
        cgroup: spec
            .cgroup
            .map_or(0, |it| it.as_raw_fd().unsigned_abs().into()),
        ..CloneArgs::default()
    };
    let dumpable = rustix::process::dumpable_behavior();
    let mask = signals::block_all();
    // SAFETY: the child runs its main function on its own stack with `shared` alive, because
    // CLONE_VFORK suspends this thread until the child has exec'd or exited; all signals are
    // blocked, so no handler runs in the child.
    let result = unsafe {
        let data = ptr::from_ref(&shared).cast();
        if spec.jail.is_some() {
            // The pidfd of the command is the one to return.
            let outer = CloneArgs {
                flags: first_clone.flags | CLONE_FILES,
                ..first_clone
            };
            clone3(&outer, enter_jail_main, data)
        } else {
            let outer = CloneArgs {
                flags: first_clone.flags | CLONE_PIDFD,
                pidfd: shared.command_clone.pidfd,
                ..first_clone
            };
            match clone3(&outer, child_main, data) {
                // The seccomp profile of a container cannot look into the arguments of clone3(2).
                NOT_IMPLEMENTED if spec.cgroup.is_none() => clone(&outer, child_main, data),
                result => result,
            }
        }
    };
    signals::set_mask(&mask);
    if spec.jail.is_none() {
        return collect_child(result, pidfd, &shared);
    }
    // A child that changed its ids in our memory made us undumpable.
    if let Ok(DumpableBehavior::Dumpable) = dumpable {
        let _as_it_was = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
    }
    if let Ok(helper @ 1..) = i32::try_from(result) {
        wait::reap_blocking(helper);
        return collect_child(
            i64::from(shared.pid.load(Ordering::Relaxed)),
            pidfd,
            &shared,
        );
    }
    collect_child(result, pidfd, &shared)
}

fn collect_child(
    result: i64,
    pidfd: c_int,
    shared: &ChildContext<'_>,
) -> Result<SpawnedChild, SpawnStepError> {
    if result < 0 {
        return Err(SpawnStepError {
            step: SpawnStep::Clone,
            errno: Errno::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EINVAL)),
        });
    }
    let pid = i32::try_from(result).unwrap_or(0);
    // SAFETY: clone3 with CLONE_PIDFD stored a fresh descriptor, or none was stored.
    let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    let errno = shared.errno.load(Ordering::Relaxed);
    if let (0, Some(pidfd)) = (errno, pidfd) {
        return Ok(SpawnedChild { pid, pidfd });
    }
    if pid > 0 {
        wait::reap_blocking(pid);
    }
    let step = usize::try_from(shared.step.load(Ordering::Relaxed)).unwrap_or(0);
    Err(SpawnStepError {
        step: SPAWN_STEPS[step.min(SPAWN_STEPS.len() - 1)],
        errno: Errno::from_raw_os_error(errno.max(1)),
    })
}

/// Calls clone3(2); the child calls `entry(data)` on its own stack and never returns here.
///
/// # Safety
/// `entry` must not return and must be fit to run in memory shared with a suspended parent.
pub(super) unsafe fn clone3(
    arguments: &CloneArgs,
    entry: extern "C" fn(*const c_void) -> !,
    data: *const c_void,
) -> i64 {
    let address = ptr::from_ref(arguments) as u64;
    let words = [address, size_of::<CloneArgs>() as u64, 0];
    // SAFETY: as the caller promises; the arguments live through the call.
    unsafe { call_clone(libc::SYS_clone3, words, entry, data) }
}

/// Calls clone(2), with those of the arguments that it has: signals with a handler have it still in
/// the child, which resets them before it unblocks any. As [`clone3`] otherwise.
///
/// # Safety
/// As of [`clone3`].
unsafe fn clone(
    arguments: &CloneArgs,
    entry: extern "C" fn(*const c_void) -> !,
    data: *const c_void,
) -> i64 {
    let flags = (arguments.flags & !CLONE_CLEAR_SIGHAND) | arguments.exit_signal;
    let top = arguments.stack + arguments.stack_size;
    // The third argument is where the pidfd is stored.
    let words = [flags, top, arguments.pidfd];
    // SAFETY: as the caller promises.
    unsafe { call_clone(libc::SYS_clone, words, entry, data) }
}

/// Calls a system call that clones, with three arguments; those after them are zero.
///
/// # Safety
/// As of [`clone3`]; the arguments must give the child a stack of its own.
#[cfg(target_arch = "x86_64")]
unsafe fn call_clone(
    number: libc::c_long,
    [first, second, third]: [u64; 3],
    entry: extern "C" fn(*const c_void) -> !,
    data: *const c_void,
) -> i64 {
    let result: i64;
    // SAFETY: in the parent this is a plain system call. In the child all registers but rax
    // and rsp are the parent's; rsp is the top of the new stack, 16-byte aligned, and `entry`
    // never returns.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") 0_u64,
            in("r8") 0_u64,
            in("r12") data,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Calls a system call that clones, with three arguments; those after them are zero.
///
/// # Safety
/// As of [`clone3`]; the arguments must give the child a stack of its own.
#[cfg(target_arch = "aarch64")]
unsafe fn call_clone(
    number: libc::c_long,
    [first, second, third]: [u64; 3],
    entry: extern "C" fn(*const c_void) -> !,
    data: *const c_void,
) -> i64 {
    let result: i64;
    // SAFETY: as for x86_64, with sp as the stack pointer.
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk 1",
            "2:",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second,
            in("x2") third,
            in("x3") 0_u64,
            in("x4") 0_u64,
            in("x20") data,
            in("x21") entry,
        );
    }
    result
}
