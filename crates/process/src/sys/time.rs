//! Clocks.

use ostler_model::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(now.tv_nsec)
}

/// The same as a timestamp.
pub(crate) fn timestamp(ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default()
}
