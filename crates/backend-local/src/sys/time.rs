//! Reading the clocks.

use std::time::Instant;

use ostler_model::Timestamp;
use ostler_model::duration::as_millis;
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

/// A reading of both clocks: the wall clock for display, the monotonic one to measure durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockReading {
    wall_ns: i64,
    monotonic: Instant,
}

impl ClockReading {
    pub(crate) fn now() -> Self {
        Self {
            wall_ns: now_ns(),
            monotonic: Instant::now(),
        }
    }

    /// The wall clock time.
    pub(crate) fn timestamp(&self) -> Timestamp {
        timestamp(self.wall_ns)
    }

    /// Milliseconds since an earlier reading, on the monotonic clock.
    pub(crate) fn ms_since(&self, earlier: &Self) -> u64 {
        let passed = self.monotonic.saturating_duration_since(earlier.monotonic);
        as_millis(passed)
    }
}
