//! Random walks: alerts come in pairs, once for each crossing.

use std::collections::HashMap;
use std::time::Duration;

use ostler_model::{AlertKind, AlertState, AlertThresholds, Timestamp};

use super::{AlertCrossings, UsageObservation};

const WALKS: u64 = 200;
const STEPS: usize = 300;

fn thresholds(random: &mut fastrand::Rng) -> AlertThresholds {
    AlertThresholds {
        cpu_percent: random.bool().then(|| random.u32(1..200)),
        memory_bytes: random.bool().then(|| random.u64(1..1_000)),
        disk_bytes: random.bool().then(|| random.u64(1..1_000)),
        run_time: random
            .bool()
            .then(|| Duration::from_secs(random.u64(1..100))),
        idle: random
            .bool()
            .then(|| Duration::from_secs(random.u64(1..30))),
    }
}

#[test]
fn alerts_come_once_for_each_crossing() {
    for seed in 0..WALKS {
        let mut random = fastrand::Rng::with_seed(seed);
        let thresholds = thresholds(&mut random);
        let mut crossings = AlertCrossings::default();
        let mut raised: HashMap<AlertKind, bool> = HashMap::new();
        let start = Timestamp::UNIX_EPOCH;
        let (mut at, mut output) = (start, 0);
        for _ in 0..STEPS {
            at += Duration::from_secs(random.u64(0..5));
            output += random.u64(0..2);
            let cpu = match random.u8(0..8) {
                0 => None,
                1 => Some(f32::NAN),
                2 => Some(f32::INFINITY),
                _ => Some(random.f32() * 250.0),
            };
            let observation = UsageObservation {
                at,
                started_at: random.bool().then_some(start),
                cpu_percent: cpu,
                memory_bytes: random.u64(0..1_200),
                disk_bytes: random.bool().then(|| random.u64(0..1_200)),
                output_bytes: Some(output),
            };
            for transition in crossings.observe(&thresholds, &observation) {
                let is_raised = transition.state == AlertState::Raised;
                let before = raised.insert(transition.kind, is_raised);
                assert_ne!(before.unwrap_or_default(), is_raised, "seed {seed}");
                assert_eq!(thresholds.of(transition.kind), Some(transition.threshold));
                assert_eq!(is_raised, transition.value >= transition.threshold);
            }
        }
        assert_ne!(raised.get(&AlertKind::RunTime), Some(&false), "seed {seed}");
    }
}

fn observation(seconds: u64, cpu_percent: f32, output: u64) -> UsageObservation {
    UsageObservation {
        at: Timestamp::UNIX_EPOCH + Duration::from_secs(seconds),
        started_at: Some(Timestamp::UNIX_EPOCH),
        cpu_percent: Some(cpu_percent),
        memory_bytes: 0,
        disk_bytes: None,
        output_bytes: Some(output),
    }
}

#[test]
fn one_busy_interval_is_no_alert_and_a_value_around_the_threshold_is_one() {
    let thresholds = AlertThresholds {
        cpu_percent: Some(80),
        ..AlertThresholds::default()
    };
    let mut crossings = AlertCrossings::default();
    let values = [
        90.0, 10.0, 85.0, 95.0, 78.0, 82.0, 73.0, 81.0, 50.0, 81.0, 81.0,
    ];
    let reported = values.into_iter().zip(0..).filter_map(|(cpu, at)| {
        let transition = crossings
            .observe(&thresholds, &observation(at, cpu, 0))
            .pop()?;
        Some((at, transition.state))
    });
    let want = [
        (3, AlertState::Raised),
        (8, AlertState::Resolved),
        (10, AlertState::Raised),
    ];
    assert_eq!(reported.collect::<Vec<_>>(), want);
}

#[test]
fn an_execution_is_idle_without_output_and_without_work() {
    let thresholds = AlertThresholds {
        idle: Some(Duration::from_secs(10)),
        ..AlertThresholds::default()
    };
    let mut crossings = AlertCrossings::default();
    let mut state = |at, cpu, output| {
        let transitions = crossings.observe(&thresholds, &observation(at, cpu, output));
        transitions.first().map(|it| it.state)
    };
    assert_eq!(state(0, 0.0, 5), None);
    assert_eq!(state(9, 0.5, 5), None);
    assert_eq!(state(12, 40.0, 5), None, "it works");
    assert_eq!(state(21, 0.0, 5), None);
    assert_eq!(state(22, 0.0, 5), Some(AlertState::Raised));
    assert_eq!(state(60, 0.0, 5), None);
    assert_eq!(state(61, 0.0, 6), Some(AlertState::Resolved));
}

#[test]
fn idleness_that_an_earlier_engine_saw_goes_on() {
    let thresholds = AlertThresholds {
        idle: Some(Duration::from_secs(4)),
        ..AlertThresholds::default()
    };
    let mut crossings = AlertCrossings::raised_before(&[AlertKind::Idle]);
    for seconds in [10, 12, 30] {
        assert_eq!(
            crossings.observe(&thresholds, &observation(seconds, 0.0, 5)),
            []
        );
    }
    let mut state_at = |seconds, cpu, output| {
        let transitions = crossings.observe(&thresholds, &observation(seconds, cpu, output));
        transitions.first().map(|it| it.state)
    };
    assert_eq!(state_at(31, 0.0, 6), Some(AlertState::Resolved));
    assert_eq!(state_at(33, 0.0, 6), None);
    assert_eq!(state_at(36, 0.0, 6), Some(AlertState::Raised));
}
