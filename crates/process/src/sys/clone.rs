//! Birth: one clone3(2) that shares memory until exec(2), so that its cost does not grow with
//! the size of the process that calls it.
//!
//! Between clone and exec the child runs on a stack of its own in its parent's memory while
//! the calling thread is suspended. It may therefore neither allocate nor take locks nor
//! unwind: [`child_main`] makes system calls on data prepared before, and nothing else.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;

use super::memory::Pages;
use super::{signals, wait};

/// Bytes of the child's stack; what it really touches is one or two pages.
pub(crate) const STACK_BYTES: usize = 64 * 1024;

const CLONE_VM: u64 = 0x100;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` of clone3(2), up to and including `cgroup`.
#[repr(C)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// A null-terminated array of C strings, as execve(2) wants it.
#[derive(Debug)]
pub(crate) struct CArray {
    _owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl CArray {
    /// Keeps the strings alive beside pointers to them.
    pub(crate) fn new(owned: Vec<CString>) -> Self {
        let strings = owned.iter().map(|string| string.as_ptr());
        let pointers = strings.chain(std::iter::once(ptr::null())).collect();
        Self {
            _owned: owned,
            pointers,
        }
    }
}

/// What a child becomes.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a CStr,
    pub(crate) argv: &'a CArray,
    pub(crate) env: &'a CArray,
    pub(crate) cwd: &'a CStr,
    /// Descriptors for 0, 1 and 2; each is 3 or more itself.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// Whether 0 is a terminal to be controlled by a session of the child's own.
    pub(crate) terminal: bool,
    /// `cgroup.procs` files to enter before exec.
    pub(crate) joins: &'a [BorrowedFd<'a>],
    /// A directory of the unified hierarchy to be born in.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    /// Whether it is killed when the thread that gives birth ends (prctl(2),
    /// `PR_SET_PDEATHSIG`).
    pub(crate) dies_with_parent: bool,
    /// Signals that may be ignored here and must not be there.
    pub(crate) ignored: &'a [c_int],
    /// Limits to lower.
    pub(crate) rlimits: &'a [(c_int, u64)],
}

/// A child that runs its program.
#[derive(Debug)]
pub(crate) struct Born {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

/// The step at which a birth failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Step {
    /// clone3(2) itself.
    Clone,
    /// setpgid(2) or setsid(2).
    Group,
    /// Entering a cgroup.
    Cgroup,
    /// dup2(2) of standard streams.
    Stdio,
    /// Taking the controlling terminal.
    Terminal,
    /// chdir(2).
    Chdir,
    /// setrlimit(2).
    Limits,
    /// execve(2).
    Exec,
}

const STEPS: [Step; 8] = [
    Step::Clone,
    Step::Group,
    Step::Cgroup,
    Step::Stdio,
    Step::Terminal,
    Step::Chdir,
    Step::Limits,
    Step::Exec,
];

impl Step {
    /// Its name in exit records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Group => "setpgid",
            Self::Cgroup => "cgroup",
            Self::Stdio => "stdio",
            Self::Terminal => "terminal",
            Self::Chdir => "chdir",
            Self::Limits => "limits",
            Self::Exec => "exec",
        }
    }
}

/// A birth that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// What parent and child share: the launch, resolved to plain numbers, and where the child
/// tells why it could not.
struct Shared<'a> {
    launch: &'a Launch<'a>,
    stdio: [RawFd; 3],
    step: AtomicI32,
    errno: AtomicI32,
}

/// Gives birth. Returns when the program runs or could not be run.
pub(crate) fn spawn(launch: &Launch<'_>, stack: &mut Pages) -> Result<Born, Failure> {
    let shared = Shared {
        launch,
        stdio: launch.stdio.map(|descriptor| descriptor.as_raw_fd()),
        step: AtomicI32::new(0),
        errno: AtomicI32::new(0),
    };
    let mut pidfd: c_int = -1;
    let cgroup = launch.cgroup.map_or(-1, |directory| directory.as_raw_fd());
    let into = if cgroup < 0 { 0 } else { CLONE_INTO_CGROUP };
    let bottom = stack.as_mut_slice().as_mut_ptr();
    let arguments = CloneArgs {
        flags: CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | into,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: bottom as u64,
        stack_size: stack.top() as u64 - bottom as u64,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: u64::try_from(cgroup).unwrap_or(0),
    };
    let mask = signals::block_all();
    // SAFETY: the child runs `child_main` on its own stack with `shared` alive, because
    // CLONE_VFORK suspends this thread until the child has exec'd or exited; all signals are
    // blocked, so no handler runs in the child.
    let result = unsafe { clone3(&arguments, child_main, ptr::from_ref(&shared).cast()) };
    signals::set_mask(&mask);
    finish(result, pidfd, &shared)
}

fn finish(result: i64, pidfd: c_int, shared: &Shared<'_>) -> Result<Born, Failure> {
    if result < 0 {
        return Err(Failure {
            step: Step::Clone,
            errno: Errno::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EINVAL)),
        });
    }
    // SAFETY: clone3 succeeded with CLONE_PIDFD, so it stored a fresh descriptor.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let pid = i32::try_from(result).unwrap_or(0);
    let errno = shared.errno.load(Ordering::Relaxed);
    if errno == 0 {
        return Ok(Born { pid, pidfd });
    }
    let _reaped = wait::reap(pid);
    let step = usize::try_from(shared.step.load(Ordering::Relaxed)).unwrap_or(0);
    Err(Failure {
        step: STEPS[step.min(STEPS.len() - 1)],
        errno: Errno::from_raw_os_error(errno),
    })
}

/// clone3(2), whose child calls `entry(data)` on its own stack and never returns here.
///
/// # Safety
/// `entry` must not return and must be fit to run in memory shared with a suspended parent.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(
    arguments: &CloneArgs,
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
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") arguments,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") data,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// clone3(2), whose child calls `entry(data)` on its own stack and never returns here.
///
/// # Safety
/// `entry` must not return and must be fit to run in memory shared with a suspended parent.
#[cfg(target_arch = "aarch64")]
unsafe fn clone3(
    arguments: &CloneArgs,
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
            in("x8") libc::SYS_clone3,
            inlateout("x0") arguments => result,
            in("x1") size_of::<CloneArgs>(),
            in("x20") data,
            in("x21") entry,
        );
    }
    result
}

/// The child's life before exec: system calls only.
extern "C" fn child_main(data: *const c_void) -> ! {
    // SAFETY: `spawn` passes a `Shared` that lives while its thread is suspended.
    let shared = unsafe { &*data.cast::<Shared<'_>>() };
    let step = prepare(shared);
    // SAFETY: errno is this thread's; nothing failed between the call and here.
    let errno = unsafe { *libc::__errno_location() };
    shared.step.store(step as i32, Ordering::Relaxed);
    shared.errno.store(errno.max(1), Ordering::Relaxed);
    // SAFETY: _exit touches no memory.
    unsafe { libc::_exit(127) }
}

/// Everything up to execve(2), which does not return when it succeeds. Returns the step that
/// failed, with errno as it set it.
fn prepare(shared: &Shared<'_>) -> Step {
    let launch = shared.launch;
    // SAFETY: system calls on pointers prepared by the parent and alive until exec.
    unsafe {
        let grouped = if launch.terminal {
            libc::setsid()
        } else {
            libc::setpgid(0, 0)
        };
        if grouped < 0 {
            return Step::Group;
        }
        if launch.dies_with_parent {
            let signal: libc::c_ulong = 9;
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        }
        for join in launch.joins {
            if libc::write(join.as_raw_fd(), c"0".as_ptr().cast(), 1) < 0 {
                return Step::Cgroup;
            }
        }
        for (number, descriptor) in (0..).zip(shared.stdio) {
            if libc::dup2(descriptor, number) < 0 {
                return Step::Stdio;
            }
        }
        if launch.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return Step::Terminal;
        }
        if libc::chdir(launch.cwd.as_ptr()) < 0 {
            return Step::Chdir;
        }
        for &(resource, limit) in launch.rlimits {
            if !lower(resource, limit) {
                return Step::Limits;
            }
        }
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
        reset_signals(launch.ignored);
        libc::execve(
            launch.program.as_ptr(),
            launch.argv.pointers.as_ptr(),
            launch.env.pointers.as_ptr(),
        );
    }
    Step::Exec
}

/// Lowers a limit, hard and soft; one that is lower already stays.
fn lower(resource: c_int, limit: u64) -> bool {
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let resource = resource.cast_unsigned();
    // SAFETY: the struct lives on this stack through both calls.
    unsafe {
        if libc::getrlimit(resource, &raw mut now) < 0 {
            return false;
        }
        now.rlim_max = now.rlim_max.min(limit);
        now.rlim_cur = now.rlim_cur.min(limit);
        libc::setrlimit(resource, &raw const now) == 0
    }
}

/// CLONE_CLEAR_SIGHAND left ignored signals ignored; those get their default back, and the
/// mask is emptied.
fn reset_signals(numbers: &[c_int]) {
    for &number in numbers {
        signals::set_action(number, false);
    }
    // SAFETY: plain system calls on values of this stack.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}
