//! Waiting for children, with their resource usage.

use std::mem::MaybeUninit;

use ostler_model::termination::WaitStatus;
use ostler_model::{Signal, Usage};
use ostler_sys::errno::last_errno;
use rustix::io::Errno;

/// A child that ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// Its pid.
    pub pid: i32,
    /// How it ended.
    pub status: WaitStatus,
    /// Its resource usage, including its reaped descendants.
    pub usage: Usage,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy)]
pub enum ReapOutcome {
    /// A child ended.
    Reaped(Reaped),
    /// Children are running.
    Running,
    /// There are no children.
    NoChildren,
}

/// Reaps one child that has ended, any of them with `pid` -1; does not block.
pub fn reap(pid: i32) -> ReapOutcome {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both out-pointers are valid; rusage is plain integers, zero is valid.
        let found = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        if found == 0 {
            return ReapOutcome::Running;
        }
        if found < 0 {
            if last_errno() == Errno::INTR {
                continue;
            }
            return ReapOutcome::NoChildren;
        }
        // SAFETY: initialised to zeroes above, filled by wait4.
        let usage = unsafe { usage.assume_init() };
        return ReapOutcome::Reaped(Reaped {
            pid: found,
            status: decode_status(status),
            usage: usage_from_rusage(&usage),
        });
    }
}

/// Waits until this child has ended, and reaps it.
pub fn reap_blocking(pid: i32) {
    let mut status = 0;
    // SAFETY: the out-pointer is valid.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        if last_errno() != Errno::INTR {
            return;
        }
    }
}

fn decode_status(status: i32) -> WaitStatus {
    if libc::WIFSIGNALED(status) {
        let signal = Signal::try_from(libc::WTERMSIG(status)).unwrap_or(Signal::KILL);
        WaitStatus::Signal(signal)
    } else {
        WaitStatus::Code(libc::WEXITSTATUS(status))
    }
}

fn usage_from_rusage(usage: &libc::rusage) -> Usage {
    Usage {
        user_us: micros(&usage.ru_utime),
        system_us: micros(&usage.ru_stime),
        max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }
}

fn micros(time: &libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

/// Adds the usage of a reaped process to a sum.
pub fn add_usage(sum: &mut Usage, more: Usage) {
    sum.user_us += more.user_us;
    sum.system_us += more.system_us;
    sum.max_rss_bytes = sum.max_rss_bytes.max(more.max_rss_bytes);
}
