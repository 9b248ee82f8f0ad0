//! The schedule of samples.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ostler_model::ExecutionId;

/// Between two samples of an execution that nobody watches.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// Between two samples of an execution that somebody watches.
pub const WATCHED_INTERVAL: Duration = Duration::from_secs(1);
/// How long one request to watch counts; a watcher asks again before it ends.
pub const WATCH_LEASE: Duration = Duration::from_secs(5);
/// Every sample is at a multiple of this, so that those of one tick are taken together.
const TICK: Duration = Duration::from_millis(500);
/// From the start of an execution to its first sample: most commands are over by then.
const FIRST_SAMPLE: Duration = Duration::from_secs(1);

/// When each execution is sampled. Times are durations since any fixed moment; they never decrease
/// from call to call.
///
/// An execution has a phase, made of its id: it is sampled at the times that have this phase within
/// the interval, so that the samples of many executions spread over it.
#[derive(Debug, Default)]
pub struct SampleSchedule {
    slots: HashMap<ExecutionId, SampleSlot>,
    due: BTreeSet<(Duration, ExecutionId)>,
}

/// One execution.
#[derive(Debug, Clone, Copy)]
struct SampleSlot {
    due: Duration,
    watched_until: Duration,
}

impl SampleSchedule {
    /// Adds an execution; one that is there already stays as it is.
    pub fn insert(&mut self, id: ExecutionId, now: Duration) {
        if self.slots.contains_key(&id) {
            return;
        }
        let due = round_up(now + FIRST_SAMPLE);
        let watched_until = Duration::ZERO;
        self.slots.insert(id, SampleSlot { due, watched_until });
        self.due.insert((due, id));
    }

    /// Removes an execution.
    pub fn remove(&mut self, id: ExecutionId) {
        if let Some(slot) = self.slots.remove(&id) {
            self.due.remove(&(slot.due, id));
        }
    }

    /// Somebody watches an execution, for the length of one lease. One that is not here is not
    /// watched.
    pub fn watch(&mut self, id: ExecutionId, now: Duration) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        slot.watched_until = now + WATCH_LEASE;
        let due = slot.due.min(next_at(id, now, WATCHED_INTERVAL));
        let old = std::mem::replace(&mut slot.due, due);
        self.due.remove(&(old, id));
        self.due.insert((due, id));
    }

    /// When the next sample is due; none where there is no execution.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The executions to sample now. Each is due again at its next time after `now`: samples that
    /// were missed meanwhile are not made up for.
    #[must_use]
    pub fn take_due(&mut self, now: Duration) -> Vec<ExecutionId> {
        let mut taken = Vec::new();
        while let Some((due, id)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            taken.push(id);
        }
        for &id in &taken {
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            let interval = if slot.watched_until > now {
                WATCHED_INTERVAL
            } else {
                SAMPLE_INTERVAL
            };
            slot.due = next_at(id, now, interval);
            self.due.insert((slot.due, id));
        }
        taken
    }
}

/// The first time after `now` that has the phase of the execution within the interval.
fn next_at(id: ExecutionId, now: Duration, interval: Duration) -> Duration {
    let tick = TICK.as_millis();
    let steps = interval.as_millis() / tick;
    let phase = phase_number(id) % steps;
    let next = now.as_millis() / tick + 1;
    let ahead = (phase + steps - next % steps) % steps;
    millis((next + ahead) * tick)
}

/// The last 32 bits of an id are random.
fn phase_number(id: ExecutionId) -> u128 {
    let [.., a, b, c, d] = id.to_bytes();
    u128::from(u32::from_be_bytes([a, b, c, d]))
}

fn round_up(at: Duration) -> Duration {
    let tick = TICK.as_millis();
    millis(at.as_millis().div_ceil(tick) * tick)
}

/// A time beyond the range never comes.
fn millis(count: u128) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn the_first_sample_is_after_a_second_and_the_others_at_its_phase() {
        let mut schedule = SampleSchedule::default();
        let id = ExecutionId::mint();
        schedule.insert(id, ms(20_100));
        assert_eq!(schedule.next_due(), Some(ms(21_500)));
        assert!(schedule.take_due(ms(21_499)).is_empty());
        assert_eq!(schedule.take_due(ms(21_500)), [id]);
        let second = schedule.next_due().expect("due again");
        assert!(second > ms(21_500) && second <= ms(31_500), "{second:?}");
        assert_eq!(schedule.take_due(second), [id]);
        assert_eq!(schedule.next_due(), Some(second + SAMPLE_INTERVAL));
        schedule.remove(id);
        assert_eq!(schedule.next_due(), None);
    }

    #[test]
    fn a_watched_one_is_sampled_every_second_until_its_lease_is_over() {
        let mut schedule = SampleSchedule::default();
        let id = ExecutionId::mint();
        schedule.insert(id, ms(0));
        let _first = schedule.take_due(ms(1_000));
        schedule.watch(id, ms(1_000));
        let mut times = Vec::new();
        while times.len() < 8 {
            let due = schedule.next_due().expect("it lives");
            assert_eq!(schedule.take_due(due), [id]);
            times.push(due);
        }
        let apart: Vec<Duration> = times.windows(2).map(|two| two[1] - two[0]).collect();
        let watched = apart.iter().filter(|it| **it == WATCHED_INTERVAL).count();
        assert!((4..=6).contains(&watched), "{apart:?}");
        assert_eq!(apart.last(), Some(&SAMPLE_INTERVAL));
    }

    #[test]
    fn a_thousand_are_spread_over_the_interval() {
        let mut schedule = SampleSchedule::default();
        for _ in 0..1_000 {
            schedule.insert(ExecutionId::mint(), ms(0));
        }
        assert_eq!(schedule.take_due(ms(1_000)).len(), 1_000);
        let mut counts = Vec::new();
        for tick in 3..=22 {
            counts.push(schedule.take_due(ms(tick * 500)).len());
        }
        assert_eq!(counts.iter().sum::<usize>(), 1_000, "{counts:?}");
        // 50 on average; chance does not reach twice that.
        assert!(counts.iter().all(|count| *count < 100), "{counts:?}");
    }
}
