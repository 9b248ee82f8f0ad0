//! Between clone and exec: system calls on data prepared before, in the caller's memory.
//!
//! Neither allocation nor locks nor unwinding: the calling thread is suspended, the others of
//! its process are not. The order matters: cgroups while the caller's ids still hold, the
//! cell's ids before the working directory that only they may enter, walls after everything
//! that they would refuse, the filter last.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::clone::{Launch, Pinned, Shared, Step, clone3};
use super::signals;
use crate::{Cell, Walls};

/// Thousandths of memory by which commands in cells seem larger than they are.
const OOM_SCORE: &CStr = c"100";

/// The child's life before exec: system calls only.
pub(super) extern "C" fn child_main(data: *const c_void) -> ! {
    // SAFETY: `spawn` passes a `Shared` that lives while its thread is suspended.
    let shared = unsafe { &*data.cast::<Shared<'_>>() };
    let step = prepare(shared);
    fail(shared, step, signals::last_errno().raw_os_error())
}

fn fail(shared: &Shared<'_>, step: Step, errno: i32) -> ! {
    shared.step.store(step as i32, Ordering::Relaxed);
    shared.errno.store(errno.max(1), Ordering::Relaxed);
    // SAFETY: _exit touches no memory.
    unsafe { libc::_exit(127) }
}

/// The life of the one that enters a cell for the command to be born there.
pub(super) extern "C" fn entering_main(data: *const c_void) -> ! {
    // SAFETY: `spawn` passes a `Shared` that lives while its thread is suspended.
    let shared = unsafe { &*data.cast::<Shared<'_>>() };
    let entered = shared.launch.cell.map_or(0, |cell| {
        // SAFETY: numbers only.
        unsafe { libc::setns(cell.pidfd().as_raw_fd(), cell.namespaces()) }
    });
    if entered < 0 {
        fail(shared, Step::Enter, signals::last_errno().raw_os_error());
    }
    // SAFETY: as in `spawn`: this process is suspended while its child uses the other half of
    // the stack.
    let pid = unsafe { clone3(&shared.inner, child_main, data) };
    match i32::try_from(pid) {
        Ok(pid @ 1..) => shared.pid.store(pid, Ordering::Relaxed),
        Ok(errno) => fail(shared, Step::Clone, -errno),
        Err(_) => fail(shared, Step::Clone, libc::EINVAL),
    }
    // SAFETY: _exit touches no memory.
    unsafe { libc::_exit(0) }
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
        if launch.cell.is_some() {
            come_first();
        }
        if !become_inside(launch.cell) {
            return Step::Ids;
        }
        // After the ids: changing them forgets it.
        if launch.dies_with_parent {
            let signal: libc::c_ulong = 9;
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        }
        if libc::chdir(launch.cwd.as_ptr()) < 0 {
            return Step::Chdir;
        }
        if launch
            .soft_open_files
            .is_some_and(|limit| !set_soft(libc::RLIMIT_NOFILE as c_int, limit))
        {
            return Step::Limits;
        }
        for &(resource, limit) in launch.rlimits {
            if !lower(resource, limit) {
                return Step::Limits;
            }
        }
        if !raised(launch.walls.map(Walls::lower)) {
            return Step::Walls;
        }
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
        reset_signals(launch.ignored);
        if !raised(launch.walls.map(Walls::filter)) {
            return Step::Walls;
        }
        execute(launch);
    }
    Step::Exec
}

/// Becomes the program; returns where it cannot, with errno.
///
/// # Safety
/// The launch's pointers must live until exec.
unsafe fn execute(launch: &Launch<'_>) {
    let (argv, env) = (launch.argv.pointers.as_ptr(), launch.env.pointers.as_ptr());
    let program = launch.program.as_ptr();
    // SAFETY: as the caller promises; the descriptor is this function's own.
    unsafe {
        let Some(pinned) = launch.pinned else {
            libc::execve(program, argv, env);
            return;
        };
        let Some(file) = open_pinned(launch.program, pinned) else {
            return;
        };
        let mut mark = [0_u8; 2];
        let read = libc::pread(file, mark.as_mut_ptr().cast(), mark.len(), 0);
        if read == 2 && mark == *b"#!" {
            // Its interpreter is told the path, and opens that.
            libc::execve(program, argv, env);
            return;
        }
        let nothing = c"".as_ptr();
        let flags = libc::AT_EMPTY_PATH;
        libc::syscall(libc::SYS_execveat, file, nothing, argv, env, flags);
    }
}

/// The program's file, where it is what it must be: while the descriptor is open, nobody comes
/// to write to it unnoticed.
///
/// # Safety
/// None but that the child is alone in what it may do: system calls only.
unsafe fn open_pinned(program: &CStr, pinned: &Pinned) -> Option<c_int> {
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
        // Not granted to those who do not own the file, who can then only look.
        let leased = libc::fcntl(file, libc::F_SETLEASE, libc::F_RDLCK);
        if leased < 0 && signals::last_errno() == Errno::AGAIN {
            *libc::__errno_location() = libc::ETXTBSY;
            return None;
        }
        let mut now: libc::stat = std::mem::zeroed();
        if libc::fstat(file, &raw mut now) < 0 {
            return None;
        }
        if !is_same(pinned, &now) {
            *libc::__errno_location() = libc::ESTALE;
            return None;
        }
        Some(file)
    }
}

fn is_same(pinned: &Pinned, now: &libc::stat) -> bool {
    let same_file = pinned
        .file
        .is_none_or(|file| file == (now.st_dev, now.st_ino));
    same_file
        && now.st_size.cast_unsigned() == pinned.size
        && (now.st_mtime, now.st_mtime_nsec) == pinned.modified
        && (now.st_ctime, now.st_ctime_nsec) == pinned.changed
}

/// Where memory runs out, a command goes before its cell's warden, whose end would take
/// everything along. Where there is no /proc, the kernel chooses.
fn come_first() {
    // SAFETY: system calls on constants; the descriptor is this function's own.
    unsafe {
        let score = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if score >= 0 {
            libc::write(score, OOM_SCORE.as_ptr().cast(), OOM_SCORE.count_bytes());
            libc::close(score);
        }
    }
}

/// Takes the cell's ids, of which the caller's groups are none; a caller that keeps its own
/// keeps its groups too, for lack of permission.
fn become_inside(cell: Option<&Cell>) -> bool {
    let Some((uid, gid)) = cell.and_then(Cell::inside_ids) else {
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

/// Whether walls stand; where not, errno says why.
fn raised(result: Option<Result<(), Errno>>) -> bool {
    match result {
        None | Some(Ok(())) => true,
        Some(Err(errno)) => {
            // SAFETY: errno is this thread's own.
            unsafe { *libc::__errno_location() = errno.raw_os_error() };
            false
        }
    }
}

/// Sets a soft limit, as far as the hard one lets it.
fn set_soft(resource: c_int, limit: u64) -> bool {
    change(resource, |now| now.rlim_cur = now.rlim_max.min(limit))
}

/// Lowers a limit, hard and soft; one that is lower already stays.
fn lower(resource: c_int, limit: u64) -> bool {
    change(resource, |now| {
        now.rlim_max = now.rlim_max.min(limit);
        now.rlim_cur = now.rlim_cur.min(limit);
    })
}

/// Changes a limit of the calling process.
fn change(resource: c_int, set: impl FnOnce(&mut libc::rlimit)) -> bool {
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
