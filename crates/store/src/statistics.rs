//! How long a command takes, usually.

use std::time::Duration;

/// The fewest ends of a command of which statistics are made.
pub const STATISTICS_RUNS_MIN: usize = 5;
/// The age in days at which an end no longer counts.
pub const STATISTICS_DAYS: i64 = 30;
/// The most ends that count, the newest ones.
pub(crate) const STATISTICS_RUNS_MAX: usize = 200;

/// One end that counts: the command exited by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSample {
    /// From its start to its end.
    pub(crate) duration: Duration,
    /// Whether its exit code was 0.
    pub(crate) success: bool,
    /// The largest resident set of one of its processes, in bytes.
    pub(crate) peak_memory_bytes: u64,
}

/// How commands with one fingerprint ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStatistics {
    /// The number of ends that they are made of.
    pub runs: u64,
    /// Of these, how many failed.
    pub failures: u64,
    /// The median duration: of the successes, where there are enough, since failures are often
    /// quick; else of all.
    pub median: Duration,
    /// The 90th percentile of the same durations.
    pub p90: Duration,
    /// The median of the peak of resident memory, in bytes.
    pub peak_memory_bytes: u64,
}

impl RunStatistics {
    /// The statistics of samples; none where they are too few.
    pub(crate) fn of(samples: &[RunSample]) -> Option<Self> {
        if samples.len() < STATISTICS_RUNS_MIN {
            return None;
        }
        let durations = |only_successes: bool| {
            let samples = samples.iter();
            let mut durations: Vec<Duration> = samples
                .filter(|sample| sample.success || !only_successes)
                .map(|sample| sample.duration)
                .collect();
            durations.sort_unstable();
            durations
        };
        let mut sorted = durations(true);
        if sorted.len() < STATISTICS_RUNS_MIN {
            sorted = durations(false);
        }
        let mut peaks: Vec<u64> = samples.iter().map(|run| run.peak_memory_bytes).collect();
        peaks.sort_unstable();
        let failures = samples.iter().filter(|sample| !sample.success).count();
        Some(Self {
            runs: samples.len() as u64,
            failures: failures as u64,
            median: quantile(&sorted, 50)?,
            p90: quantile(&sorted, 90)?,
            peak_memory_bytes: quantile(&peaks, 50)?,
        })
    }
}

/// The smallest value that at least `percent` of the values do not exceed.
fn quantile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(seconds: &[(u64, bool)]) -> Vec<RunSample> {
        let sample = |&(seconds, success): &(u64, bool)| RunSample {
            duration: Duration::from_secs(seconds),
            success,
            peak_memory_bytes: seconds * 1_000,
        };
        seconds.iter().map(sample).collect()
    }

    #[test]
    fn few_ends_say_nothing() {
        let four = samples(&[(1, true); 4]);
        assert_eq!(RunStatistics::of(&four), None);
    }

    #[test]
    fn quick_failures_do_not_shorten_the_median() {
        let all = samples(&[
            (60, true),
            (61, true),
            (1, false),
            (62, true),
            (90, true),
            (63, true),
            (1, false),
        ]);
        let expected = RunStatistics {
            runs: 7,
            failures: 2,
            median: Duration::from_secs(62),
            p90: Duration::from_secs(90),
            peak_memory_bytes: 61_000,
        };
        assert_eq!(RunStatistics::of(&all), Some(expected));
    }

    #[test]
    fn a_command_that_always_fails_has_durations_too() {
        let statistics = RunStatistics::of(&samples(&[(2, false); 5]));
        let statistics = statistics.expect("five are enough");
        assert_eq!((statistics.runs, statistics.failures), (5, 5));
        assert_eq!(statistics.median, Duration::from_secs(2));
    }
}
