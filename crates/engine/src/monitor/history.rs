//! The samples of one execution, at a resolution that falls with their age. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use ostler_model::{Timestamp, UsageSample};

/// The resolutions in which samples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageResolution {
    /// A point per second, for two minutes.
    Second,
    /// A point per 10 seconds, for an hour.
    TenSeconds,
    /// A point per five minutes, for two days.
    FiveMinutes,
}

impl UsageResolution {
    /// All of them, the finest first.
    pub const ALL: [Self; 3] = [Self::Second, Self::TenSeconds, Self::FiveMinutes];

    /// The length of one point, in seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::TenSeconds => 10,
            Self::FiveMinutes => 300,
        }
    }

    /// The resolution with points of this length.
    #[must_use]
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|resolution| resolution.seconds() == seconds)
    }

    /// How many points of it are kept.
    const fn points(self) -> usize {
        match self {
            Self::Second => 120,
            Self::TenSeconds => 360,
            Self::FiveMinutes => 576,
        }
    }

    /// How far back it reaches.
    const fn span(self) -> Duration {
        Duration::from_secs(self.seconds() * self.points() as u64)
    }

    /// The finest one that reaches back to a time; of those that do not, the longest. An hour where
    /// no time is named.
    fn covering(since: Option<Timestamp>, now: Timestamp) -> Self {
        let Some(since) = since else {
            return Self::TenSeconds;
        };
        let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let mut all = Self::ALL.into_iter();
        all.find(|it| age <= it.span()).unwrap_or(Self::FiveMinutes)
    }

    const fn index(self) -> usize {
        match self {
            Self::Second => 0,
            Self::TenSeconds => 1,
            Self::FiveMinutes => 2,
        }
    }
}

/// Selects points.
#[derive(Debug, Clone, Copy, Default)]
pub struct UsageHistoryQuery {
    /// Only points that are newer.
    pub since: Option<Timestamp>,
    /// The resolution; without it, the finest that reaches back to `since`.
    pub resolution: Option<UsageResolution>,
    /// The most points.
    pub limit: usize,
}

/// Points of one execution, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageHistory {
    /// Their resolution.
    pub resolution: UsageResolution,
    /// The points. Each is what the samples of one interval showed together: processor time on
    /// average, memory and processes at most, the others as in the last of them, whose time it has.
    pub points: Vec<UsageSample>,
    /// Whether there are more, from the last of these on.
    pub has_more: bool,
}

/// The history of one execution.
#[derive(Debug, Default)]
pub(super) struct SampleHistory {
    /// The points of each resolution.
    rings: [VecDeque<StoredPoint>; 3],
}

impl SampleHistory {
    /// Adds a sample. Without permission to grow, each resolution drops a point for a new one.
    /// Returns by how many points it is longer now.
    pub(super) fn push(&mut self, sample: &UsageSample, may_grow: bool) -> isize {
        let before = self.len();
        for resolution in UsageResolution::ALL {
            let ring = &mut self.rings[resolution.index()];
            let point = StoredPoint::of(sample);
            let bucket = |point: &StoredPoint| point.at_ms.div_euclid(seconds_ms(resolution));
            if let Some(last) = ring.back_mut()
                && bucket(last) == bucket(&point)
            {
                last.merge(&point);
                continue;
            }
            let oldest = point.at_ms - i64::try_from(resolution.span().as_millis()).unwrap_or(0);
            let has_room = ring.len() < resolution.points() && may_grow;
            if !has_room {
                ring.pop_front();
            }
            while ring.front().is_some_and(|front| front.at_ms <= oldest) {
                ring.pop_front();
            }
            ring.push_back(point);
        }
        self.len().cast_signed() - before.cast_signed()
    }

    /// How many points it holds.
    pub(super) fn len(&self) -> usize {
        self.rings.iter().map(VecDeque::len).sum()
    }

    /// The points that a query selects.
    pub(super) fn read(&self, query: UsageHistoryQuery, now: Timestamp) -> UsageHistory {
        let covering = || UsageResolution::covering(query.since, now);
        let resolution = query.resolution.unwrap_or_else(covering);
        let since_ms = query.since.map(Timestamp::as_millisecond);
        let is_newer = |point: &&StoredPoint| since_ms.is_none_or(|since| point.at_ms > since);
        let mut newer = self.rings[resolution.index()].iter().filter(is_newer);
        let points = newer.by_ref().take(query.limit);
        let points = points.copied().map(StoredPoint::to_sample).collect();
        UsageHistory {
            resolution,
            points,
            has_more: newer.next().is_some(),
        }
    }
}

fn seconds_ms(resolution: UsageResolution) -> i64 {
    const MILLIS: u64 = 1_000;
    (resolution.seconds() * MILLIS).cast_signed()
}

/// A number of bytes that is not known, in a stored point.
const UNKNOWN: u64 = u64::MAX;

/// A point, in few bytes.
#[derive(Debug, Clone, Copy)]
struct StoredPoint {
    at_ms: i64,
    memory_bytes: u64,
    disk_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    received_bytes: u64,
    sent_bytes: u64,
    cpu_percent: f32,
    /// How many samples the processor time is the average of; 0 where it is not known.
    cpu_samples: u16,
    processes: u32,
}

impl StoredPoint {
    fn of(sample: &UsageSample) -> Self {
        let stored = |bytes: Option<u64>| bytes.unwrap_or(UNKNOWN);
        Self {
            at_ms: sample.at.as_millisecond(),
            memory_bytes: sample.memory_bytes,
            disk_bytes: stored(sample.disk_bytes),
            read_bytes: stored(sample.read_bytes),
            written_bytes: stored(sample.written_bytes),
            received_bytes: stored(sample.received_bytes),
            sent_bytes: stored(sample.sent_bytes),
            cpu_percent: sample.cpu_percent.unwrap_or_default(),
            cpu_samples: sample.cpu_percent.map_or(0, |_| 1),
            processes: sample.processes,
        }
    }

    /// Includes a later sample of the same interval.
    fn merge(&mut self, later: &Self) {
        let samples = self.cpu_samples.saturating_add(later.cpu_samples);
        let mut cpu_percent = self.cpu_percent;
        if later.cpu_samples > 0 {
            cpu_percent += (later.cpu_percent - cpu_percent) / f32::from(samples);
        }
        *self = Self {
            memory_bytes: self.memory_bytes.max(later.memory_bytes),
            processes: self.processes.max(later.processes),
            cpu_samples: samples,
            cpu_percent,
            ..*later
        };
    }

    fn to_sample(self) -> UsageSample {
        let known = |bytes: u64| (bytes != UNKNOWN).then_some(bytes);
        UsageSample {
            // It was made of a time.
            at: Timestamp::from_millisecond(self.at_ms).unwrap_or_default(),
            cpu_percent: (self.cpu_samples > 0).then_some(self.cpu_percent),
            memory_bytes: self.memory_bytes,
            disk_bytes: known(self.disk_bytes),
            read_bytes: known(self.read_bytes),
            written_bytes: known(self.written_bytes),
            received_bytes: known(self.received_bytes),
            sent_bytes: known(self.sent_bytes),
            processes: self.processes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: UsageHistoryQuery = UsageHistoryQuery {
        since: None,
        resolution: None,
        limit: usize::MAX,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_100 + second).expect("a time")
    }

    fn sample(second: i64, cpu: Option<f32>, memory_bytes: u64) -> UsageSample {
        UsageSample {
            at: at(second),
            cpu_percent: cpu,
            memory_bytes,
            ..UsageSample::default()
        }
    }

    fn points(history: &SampleHistory, resolution: UsageResolution, now: i64) -> Vec<UsageSample> {
        let resolution = Some(resolution);
        let query = UsageHistoryQuery { resolution, ..ALL };
        history.read(query, at(now)).points
    }

    #[test]
    fn a_point_is_the_average_of_processor_time_and_the_most_of_memory() {
        let mut history = SampleHistory::default();
        for (second, cpu, memory) in [(0, None, 5), (1, Some(10.0), 9), (2, Some(40.0), 7)] {
            history.push(&sample(second, cpu, memory), true);
        }
        assert_eq!(points(&history, UsageResolution::Second, 2).len(), 3);
        let merged = points(&history, UsageResolution::TenSeconds, 2);
        assert_eq!(merged, [sample(2, Some(25.0), 9)]);
        history.push(&sample(10, Some(1.0), 1), true);
        let merged = points(&history, UsageResolution::TenSeconds, 10);
        assert_eq!(merged, [sample(2, Some(25.0), 9), sample(10, Some(1.0), 1)]);
    }

    #[test]
    fn days_of_samples_take_a_fixed_size() {
        let mut history = SampleHistory::default();
        let (days, second_last) = (3 * 86_400, 3 * 86_400 - 1);
        for second in 0..days {
            history.push(&sample(second, Some(1.0), 1), true);
        }
        assert_eq!(history.len(), 120 + 360 + 576);
        let now = second_last;
        let lengths = UsageResolution::ALL.map(|it| points(&history, it, now).len());
        assert_eq!(lengths, [120, 360, 576]);
        let grown = history.push(&sample(days, None, 1), false);
        assert_eq!(grown, 0, "as many as before");
        // Much later, what is too old is gone.
        history.push(&sample(days + 7_200, None, 1), true);
        let now = days + 7_200;
        let lengths = UsageResolution::ALL.map(|it| points(&history, it, now).len());
        assert_eq!(lengths, [1, 1, 554]);
    }

    #[test]
    fn pages_follow_one_another_without_a_gap() {
        let mut history = SampleHistory::default();
        for second in 0..100 {
            history.push(&sample(second, None, second.unsigned_abs()), true);
        }
        let mut query = UsageHistoryQuery {
            since: Some(at(-1)),
            limit: 30,
            ..ALL
        };
        let mut seen = Vec::new();
        loop {
            let page = history.read(query, at(100));
            assert_eq!(page.resolution, UsageResolution::Second);
            seen.extend(page.points.iter().map(|point| point.memory_bytes));
            query.since = page.points.last().map(|point| point.at);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(seen, (0..100).collect::<Vec<u64>>());
        assert!(history.read(query, at(100)).points.is_empty());
    }

    #[test]
    fn the_resolution_reaches_back_to_the_time_that_is_asked_for() {
        for (age, expected) in [
            (-5, UsageResolution::Second),
            (120, UsageResolution::Second),
            (121, UsageResolution::TenSeconds),
            (3_601, UsageResolution::FiveMinutes),
            (9_999_999, UsageResolution::FiveMinutes),
        ] {
            let covering = UsageResolution::covering(Some(at(-age)), at(0));
            assert_eq!(covering, expected, "{age}");
        }
        let hour = UsageResolution::covering(None, at(0));
        assert_eq!(hour, UsageResolution::TenSeconds);
        assert_eq!(
            UsageResolution::from_seconds(300),
            Some(UsageResolution::FiveMinutes)
        );
        assert_eq!(UsageResolution::from_seconds(2), None);
    }

    #[test]
    fn without_room_to_grow_the_oldest_points_go() {
        let mut history = SampleHistory::default();
        for second in 0..10 {
            history.push(&sample(second, None, 1), second < 3);
        }
        let kept = points(&history, UsageResolution::Second, 10);
        let kept: Vec<_> = kept.iter().map(|point| point.at).collect();
        assert_eq!(kept, [at(7), at(8), at(9)]);
    }
}
