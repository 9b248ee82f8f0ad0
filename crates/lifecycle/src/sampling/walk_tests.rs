//! Random walks over [`SampleSchedule`]: whatever is added, removed and watched, every living
//! execution is sampled in time, and nothing else is.

use std::collections::HashMap;
use std::time::Duration;

use ostler_model::ExecutionId;

use super::{SAMPLE_INTERVAL, SampleSchedule, WATCH_LEASE, WATCHED_INTERVAL};

const WALKS: u64 = 200;
const STEPS: usize = 400;
/// A sample is at most this much later than its interval: ticks.
const TICK: Duration = Duration::from_millis(500);

/// What the walk knows of an execution.
struct Expected {
    /// The last sample, or its beginning.
    last: Duration,
    samples: u32,
    /// When somebody began to watch it.
    watched_from: Duration,
    watched_until: Duration,
}

impl Expected {
    fn new(now: Duration) -> Self {
        Self {
            last: now,
            samples: 0,
            watched_from: Duration::ZERO,
            watched_until: Duration::ZERO,
        }
    }

    fn watch(&mut self, now: Duration) {
        if self.watched_until <= now {
            self.watched_from = now;
        }
        self.watched_until = now + WATCH_LEASE;
    }
}

#[test]
fn every_living_execution_is_sampled_in_time_and_no_other() {
    for seed in 0..WALKS {
        walk(seed);
    }
}

fn walk(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut schedule = SampleSchedule::default();
    let mut living: HashMap<ExecutionId, Expected> = HashMap::new();
    let mut now = Duration::ZERO;
    for step in 0..STEPS {
        // The driver wakes up when something is due, or earlier for something else.
        let due = schedule.next_due();
        let other = now + Duration::from_millis(random.u64(0..700));
        now = due.map_or(other, |due| due.max(now).min(other));
        for id in schedule.take_due(now) {
            let expected = living.get_mut(&id);
            let expected = expected.unwrap_or_else(|| panic!("{seed} {step}: it was removed"));
            check_interval(expected, now, (seed, step));
            expected.last = now;
            expected.samples += 1;
        }
        let due = schedule.next_due();
        assert_eq!(due.is_none(), living.is_empty(), "{seed} {step}");
        assert!(
            due.is_none_or(|due| due > now),
            "{seed} {step}: not again now"
        );
        let chosen = random.usize(0..living.len().max(1));
        let chosen = living.keys().nth(chosen).copied();
        match (random.u8(0..8), chosen) {
            (0 | 1, _) if living.len() < 20 => {
                let id = ExecutionId::mint();
                schedule.insert(id, now);
                // A second time changes nothing.
                schedule.insert(id, now);
                living.insert(id, Expected::new(now));
            }
            (2, Some(id)) => {
                schedule.remove(id);
                living.remove(&id);
                schedule.watch(id, now);
            }
            (3, Some(id)) => {
                schedule.watch(id, now);
                if let Some(expected) = living.get_mut(&id) {
                    expected.watch(now);
                }
            }
            _ => {}
        }
    }
}

/// The walk wakes up exactly when something is due, so that no sample is late.
fn check_interval(expected: &Expected, now: Duration, at: (u64, usize)) {
    let Expected {
        last,
        watched_from,
        watched_until,
        ..
    } = *expected;
    let from = last.max(watched_from);
    let latest = if expected.samples == 0 {
        last + WATCHED_INTERVAL + TICK
    } else if watched_until > from {
        from + WATCHED_INTERVAL
    } else {
        last + SAMPLE_INTERVAL
    };
    assert!(now <= latest, "{at:?}: at {now:?}, not by {latest:?}");
    let is_apart = expected.samples == 0 || now >= last + TICK;
    assert!(is_apart, "{at:?}: at {now:?}, right after {last:?}");
}
