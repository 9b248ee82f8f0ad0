//! The child between clone and exec: system calls on data prepared before, in the caller's memory.
//!
//! Neither allocation nor locks nor unwinding: the calling thread is suspended, the others of its
//! process are not. The order matters: cgroups while the caller's ids still hold, the jail's ids
//! before the working directory that only they may enter, restrictions after everything that they
//! would refuse, the filter last.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;

use ostler_sys::errno::last_errno;
use ostler_sys::signals;
use rustix::io::Errno;

use super::clone3::{ChildContext, ExpectedFile, SpawnSpec, SpawnStep, clone3};
use crate::{Jail, Restrictions};

/// The share of memory, in thousandths, that is added to the out-of-memory score of commands in
/// jails.
const OOM_SCORE_ADJ: &CStr = c"100";

/// Runs the child before exec: system calls only.
pub(super) extern "C" fn child_main(data: *const c_void) -> ! {
    // SAFETY: `spawn` passes a `ChildContext` that lives while its thread is suspended.
    let shared = unsafe { &*data.cast::<ChildContext<'_>>() };
    let step = prepare_and_exec(shared);
    report_failure(shared, step, last_errno().raw_os_error())
}

fn report_failure(shared: &ChildContext<'_>, step: SpawnStep, errno: i32) -> ! {
    shared.step.store(step as i32, Ordering::Relaxed);
    shared.errno.store(errno.max(1), Ordering::Relaxed);
    // SAFETY: _exit touches no memory.
    unsafe { libc::_exit(127) }
}

/// Runs the intermediate child that enters a jail so that the command is spawned there.
pub(super) extern "C" fn enter_jail_main(data: *const c_void) -> ! {
    // SAFETY: `spawn` passes a `ChildContext` that lives while its thread is suspended.
    let shared = unsafe { &*data.cast::<ChildContext<'_>>() };
    let entered = shared.spec.jail.map_or(0, |jail| {
        // SAFETY: numbers only.
        unsafe { libc::setns(jail.pidfd().as_raw_fd(), jail.namespaces()) }
    });
    if entered < 0 {
        report_failure(shared, SpawnStep::EnterJail, last_errno().raw_os_error());
    }
    // SAFETY: as in `spawn`: this process is suspended while its child uses the other half of
    // the stack.
    let pid = unsafe { clone3(&shared.command_clone, child_main, data) };
    match i32::try_from(pid) {
        Ok(pid @ 1..) => shared.pid.store(pid, Ordering::Relaxed),
        Ok(errno) => report_failure(shared, SpawnStep::Clone, -errno),
        Err(_) => report_failure(shared, SpawnStep::Clone, libc::EINVAL),
    }
    // SAFETY: _exit touches no memory.
    unsafe { libc::_exit(0) }
}

/// Everything up to execve(2), which does not return when it succeeds. Returns the step that
/// failed, with errno as it set it.
fn prepare_and_exec(shared: &ChildContext<'_>) -> SpawnStep {
    let spec = shared.spec;
    // SAFETY: system calls on pointers prepared by the parent and alive until exec.
    unsafe {
        let result = if spec.terminal || spec.leads_session {
            libc::setsid()
        } else {
            libc::setpgid(0, 0)
        };
        if result < 0 {
            return SpawnStep::Session;
        }
        for join in spec.cgroup_procs {
            if libc::write(join.as_raw_fd(), c"0".as_ptr().cast(), 1) < 0 {
                return SpawnStep::Cgroup;
            }
        }
        for (number, descriptor) in (0..).zip(shared.stdio) {
            if libc::dup2(descriptor, number) < 0 {
                return SpawnStep::Stdio;
            }
        }
        if spec.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return SpawnStep::Terminal;
        }
        if spec.jail.is_some() {
            raise_oom_score();
        }
        if !set_jail_ids(spec.jail) {
            return SpawnStep::SetIds;
        }
        // After the ids: changing them clears it.
        if spec.dies_with_parent {
            let signal: libc::c_ulong = 9;
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        }
        if libc::chdir(spec.cwd.as_ptr()) < 0 {
            return SpawnStep::Chdir;
        }
        if spec
            .soft_open_files
            .is_some_and(|limit| !set_soft_limit(libc::RLIMIT_NOFILE as c_int, limit))
        {
            return SpawnStep::Limits;
        }
        for &(resource, limit) in spec.rlimits {
            if !lower_limit(resource, limit) {
                return SpawnStep::Limits;
            }
        }
        if !applied_or_set_errno(spec.restrictions.map(Restrictions::apply)) {
            return SpawnStep::Restrictions;
        }
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
        reset_signals(spec.reset_signals);
        if !applied_or_set_errno(spec.restrictions.map(Restrictions::apply_seccomp)) {
            return SpawnStep::Restrictions;
        }
        exec_program(spec);
    }
    SpawnStep::Exec
}

/// Executes the program; returns only on failure, with errno set.
///
/// # Safety
/// The specification's pointers must live until exec.
unsafe fn exec_program(spec: &SpawnSpec<'_>) {
    let (argv, env) = (spec.argv.pointers.as_ptr(), spec.env.pointers.as_ptr());
    let program = spec.program.as_ptr();
    // SAFETY: as the caller promises; the descriptor is this function's own.
    unsafe {
        let Some(expected) = spec.expected else {
            libc::execve(program, argv, env);
            return;
        };
        let Some(file) = open_expected(spec.program, expected) else {
            return;
        };
        let mut magic = [0_u8; 2];
        let read = libc::pread(file, magic.as_mut_ptr().cast(), magic.len(), 0);
        if read == 2 && magic == *b"#!" {
            // Its interpreter is given the path, and opens that.
            libc::execve(program, argv, env);
            return;
        }
        let nothing = c"".as_ptr();
        let flags = libc::AT_EMPTY_PATH;
        libc::syscall(libc::SYS_execveat, file, nothing, argv, env, flags);
    }
}

/// Opens the program's file, if it is the expected one: while the descriptor is open, no process
/// writes to it unnoticed.
///
/// # Safety
/// The path must live through the call, which makes system calls only.
unsafe fn open_expected(program: &CStr, expected: &ExpectedFile) -> Option<c_int> {
    // SAFETY: system calls on a path that lives until exec and on this stack.
    unsafe {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let mut file = libc::open(program.as_ptr(), flags | libc::O_RDONLY);
        if file < 0 {
            file = libc::open(program.as_ptr(), libc::O_CLOEXEC | libc::O_PATH);
        }
        if file < 0 {
            return None;
        }
        // Not granted to processes that do not own the file; they only compare it.
        let leased = libc::fcntl(file, libc::F_SETLEASE, libc::F_RDLCK);
        if leased < 0 && last_errno() == Errno::AGAIN {
            *libc::__errno_location() = libc::ETXTBSY;
            return None;
        }
        let mut now: libc::stat = std::mem::zeroed();
        if libc::fstat(file, &raw mut now) < 0 {
            return None;
        }
        if !is_expected(expected, &now) {
            *libc::__errno_location() = libc::ESTALE;
            return None;
        }
        Some(file)
    }
}

fn is_expected(expected: &ExpectedFile, now: &libc::stat) -> bool {
    let same_file = expected
        .dev_ino
        .is_none_or(|file| file == (now.st_dev, now.st_ino));
    same_file
        && now.st_size.cast_unsigned() == expected.size
        && (now.st_mtime, now.st_mtime_nsec) == expected.mtime
        && (now.st_ctime, now.st_ctime_nsec) == expected.ctime
}

/// When memory is exhausted, a command is killed before its jail's init, whose end would kill
/// everything inside. Without /proc, the kernel chooses.
fn raise_oom_score() {
    // SAFETY: system calls on constants; the descriptor is this function's own.
    unsafe {
        let score_file = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if score_file >= 0 {
            libc::write(
                score_file,
                OOM_SCORE_ADJ.as_ptr().cast(),
                OOM_SCORE_ADJ.count_bytes(),
            );
            libc::close(score_file);
        }
    }
}

/// Takes the jail's ids and drops the caller's groups; a caller that keeps its own ids keeps its
/// groups too, for lack of permission.
fn set_jail_ids(jail: Option<&Jail>) -> bool {
    let Some((uid, gid)) = jail.and_then(Jail::inside_ids) else {
        return true;
    };
    // SAFETY: numbers only; raw calls, because the C library's would change every thread.
    unsafe {
        let none = ptr::null::<libc::gid_t>();
        libc::syscall(libc::SYS_setgroups, 0_usize, none) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
    }
}

/// Whether a restriction was applied; if not, errno is set to the cause.
fn applied_or_set_errno(result: Option<Result<(), Errno>>) -> bool {
    match result {
        None | Some(Ok(())) => true,
        Some(Err(errno)) => {
            // SAFETY: errno is this thread's own.
            unsafe { *libc::__errno_location() = errno.raw_os_error() };
            false
        }
    }
}

/// Sets a soft limit, up to the hard one.
fn set_soft_limit(resource: c_int, limit: u64) -> bool {
    change_limit(resource, |now| now.rlim_cur = now.rlim_max.min(limit))
}

/// Lowers a limit, hard and soft; one that is lower already stays.
fn lower_limit(resource: c_int, limit: u64) -> bool {
    change_limit(resource, |now| {
        now.rlim_max = now.rlim_max.min(limit);
        now.rlim_cur = now.rlim_cur.min(limit);
    })
}

/// Changes a limit of the calling process.
fn change_limit(resource: c_int, set: impl FnOnce(&mut libc::rlimit)) -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let resource = resource.cast_unsigned();
    // SAFETY: the struct lives on this stack through both calls.
    unsafe {
        if libc::getrlimit(resource, &raw mut limit) < 0 {
            return false;
        }
        set(&mut limit);
        libc::setrlimit(resource, &raw const limit) == 0
    }
}

/// Resets ignored signals, which CLONE_CLEAR_SIGHAND leaves ignored, to their default action, and
/// empties the mask.
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
