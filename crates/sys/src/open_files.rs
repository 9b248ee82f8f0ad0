//! The limit on open files (`RLIMIT_NOFILE`, setrlimit(2)). A daemon raises its soft limit to the
//! hard one, as do its zygote and shims; commands are spawned with the soft limit that the daemon
//! was started with. A few descriptors are reserved for connections and for the files a response is
//! read from.

mod budget;
#[expect(unsafe_code, reason = "poll(2) of numbers that may be closed")]
mod fd_scan;

use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

pub use budget::{
    EMERGENCY_FDS, EmergencyFdGuard, ExpectedFds, available, has_free, has_reserve, has_waiters,
    is_scarce, notify_closed, refill_emergency_fds, wait_for, wait_for_change, wait_for_waiter,
    wait_passively, with_emergency_fds,
};

/// The share of the limit reserved for other uses than executions: one part in this many.
const RESERVED_PART: u64 = 200;
/// The least number reserved.
const RESERVED_MIN: u64 = 5;
/// The greatest number reserved.
const RESERVED_MAX: u64 = 64;

/// The soft limit before it was raised; unset while it was not.
static ORIGINAL_LIMIT: OnceLock<u64> = OnceLock::new();

/// Raises this process's soft limit to its hard one and returns the limit then in force. What this
/// process starts is to get the original limit: [`original_limit`], [`restore_limit`].
///
/// # Errors
/// As setrlimit(2).
pub fn raise_limit() -> Result<u64, Errno> {
    let now = getrlimit(Resource::Nofile);
    raise_limit_from(now.current.unwrap_or(u64::MAX))
}

/// As [`raise_limit`], where the original limit is known.
fn raise_limit_from(before: u64) -> Result<u64, Errno> {
    ORIGINAL_LIMIT.get_or_init(|| before);
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// Raises the limit of a zygote at the first request for a shim: by then the daemon that started it
/// has restored the original limit, see [`restore_limit`].
pub fn raise_limit_once() {
    if ORIGINAL_LIMIT.get().is_none() {
        let _not_raised = raise_limit();
    }
}

/// The soft limit for what this process starts, where it differs from its own.
#[must_use]
pub fn original_limit() -> Option<u64> {
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ORIGINAL_LIMIT
        .get()
        .copied()
        .filter(|before| *before != now)
}

/// Gives a child that was just started the original soft limit (prlimit(2)).
pub fn restore_limit(pid: Pid) {
    if let Some(before) = original_limit() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit {
            current: Some(before),
            maximum,
        };
        let _gone = prlimit(Some(pid), Resource::Nofile, limit);
    }
}

/// How many files this process may have open.
#[must_use]
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many of these descriptors are reserved for other uses than executions.
#[must_use]
pub fn reserved(limit: u64) -> u64 {
    (limit / RESERVED_PART).clamp(RESERVED_MIN, RESERVED_MAX)
}

/// Whether an error means that no descriptor was left (`EMFILE`, `ENFILE`).
#[must_use]
pub fn is_exhausted(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// As [`is_exhausted`], for an error of the standard library.
#[must_use]
pub fn is_exhausted_io(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(is_exhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_keeps_little_and_a_large_one_not_too_much() {
        assert_eq!(reserved(64), 5);
        assert_eq!(reserved(1_024), 5);
        assert_eq!(reserved(4_096), 20);
        assert_eq!(reserved(1_048_576), 64);
        assert_eq!(reserved(u64::MAX), 64);
    }
}
