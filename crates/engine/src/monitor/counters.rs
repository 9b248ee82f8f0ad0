//! From counters of processes to samples: differences, and totals that never fall. Pure.

use std::time::{Duration, Instant};

use ostler_backend::UsageReading;
use ostler_model::UsageSample;

/// The counters of one execution over its attempts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UsageCounters {
    last: Option<CpuMark>,
    read: TotalBytes,
    written: TotalBytes,
    received: TotalBytes,
    sent: TotalBytes,
}

/// The processor time at one reading.
#[derive(Debug, Clone, Copy)]
struct CpuMark {
    instant: Instant,
    cpu_us: u64,
}

/// Bytes since the start of the execution. The sum over processes falls when one ends that nobody
/// in the tree waited for; the largest sum of the attempt counts.
#[derive(Debug, Clone, Copy, Default)]
struct TotalBytes {
    earlier_attempts: u64,
    attempt: Option<u64>,
    /// Whether it was ever known.
    is_known: bool,
}

impl TotalBytes {
    fn advance(&mut self, now: Option<u64>) {
        self.attempt = self.attempt.max(now);
        self.is_known |= now.is_some();
    }

    fn total(self) -> Option<u64> {
        let total = self
            .earlier_attempts
            .saturating_add(self.attempt.unwrap_or_default());
        self.is_known.then_some(total)
    }

    fn begin_attempt(&mut self) {
        let ended = self.attempt.take().unwrap_or_default();
        self.earlier_attempts = self.earlier_attempts.saturating_add(ended);
    }
}

impl UsageCounters {
    /// The processes that are read next are others.
    pub(super) fn begin_attempt(&mut self) {
        self.last = None;
        for total in [
            &mut self.read,
            &mut self.written,
            &mut self.received,
            &mut self.sent,
        ] {
            total.begin_attempt();
        }
    }

    /// Includes a reading; returns it as a sample.
    pub(super) fn advance(
        &mut self,
        reading: &UsageReading,
        disk_bytes: Option<u64>,
    ) -> UsageSample {
        let mark = CpuMark {
            instant: reading.instant,
            cpu_us: reading.cpu_us,
        };
        let before = self.last.replace(mark);
        self.read.advance(reading.read_bytes);
        self.written.advance(reading.written_bytes);
        self.received.advance(reading.received_bytes);
        self.sent.advance(reading.sent_bytes);
        UsageSample {
            at: reading.at,
            cpu_percent: before.and_then(|before| cpu_percent(before, mark)),
            memory_bytes: reading.memory_bytes,
            disk_bytes,
            read_bytes: self.read.total(),
            written_bytes: self.written.total(),
            received_bytes: self.received.total(),
            sent_bytes: self.sent.total(),
            processes: reading.processes,
        }
    }
}

/// A difference below zero counts as 0: a process ended that the tree's processor time included, and
/// that nobody waited for. None where no time has passed.
fn cpu_percent(before: CpuMark, now: CpuMark) -> Option<f32> {
    let elapsed = now.instant.checked_duration_since(before.instant)?;
    let used = Duration::from_micros(now.cpu_us.saturating_sub(before.cpu_us));
    (!elapsed.is_zero()).then(|| used.as_secs_f32() / elapsed.as_secs_f32() * 100.0)
}

#[cfg(test)]
mod tests {
    use ostler_model::Timestamp;

    use super::*;

    fn reading(start: Instant, seconds: u64, cpu_us: u64, read: Option<u64>) -> UsageReading {
        UsageReading {
            at: Timestamp::UNIX_EPOCH,
            instant: start + Duration::from_secs(seconds),
            cpu_us,
            memory_bytes: 4_096,
            read_bytes: read,
            written_bytes: None,
            received_bytes: None,
            sent_bytes: None,
            processes: 1,
        }
    }

    #[test]
    fn percent_is_of_the_interval_and_never_below_zero() {
        let (start, mut counters) = (Instant::now(), UsageCounters::default());
        let mut percent = |seconds, cpu_us| {
            let reading = reading(start, seconds, cpu_us, None);
            counters.advance(&reading, None).cpu_percent
        };
        assert_eq!(percent(0, 7_000_000), None, "nothing to compare with");
        assert_eq!(percent(10, 12_000_000), Some(50.0));
        assert_eq!(percent(10, 12_500_000), None, "no time has passed");
        assert_eq!(percent(20, 2_000_000), Some(0.0), "it fell");
        assert_eq!(percent(21, 4_000_000), Some(200.0));
    }

    #[test]
    fn totals_never_fall_and_are_none_until_they_are_known() {
        let (start, mut counters) = (Instant::now(), UsageCounters::default());
        let mut seconds = 0;
        let mut total = |counters: &mut UsageCounters, read| {
            seconds += 1;
            let reading = reading(start, seconds, 0, read);
            counters.advance(&reading, None).read_bytes
        };
        assert_eq!(total(&mut counters, None), None);
        assert_eq!(total(&mut counters, Some(100)), Some(100));
        assert_eq!(total(&mut counters, Some(40)), Some(100), "one has ended");
        assert_eq!(total(&mut counters, None), Some(100));
        assert_eq!(total(&mut counters, Some(130)), Some(130));
        counters.begin_attempt();
        assert_eq!(total(&mut counters, None), Some(130));
        assert_eq!(total(&mut counters, Some(5)), Some(135));
    }
}
