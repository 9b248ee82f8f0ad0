//! [`AlertCrossings`]: which thresholds of one execution are crossed.

use ostler_model::duration::{as_millis, between};
use ostler_model::{AlertKind, AlertState, AlertThresholds, Timestamp};

/// How many samples in a row must be above the threshold of processor time: one interval of much
/// work is no news.
const CPU_SAMPLES: u8 = 2;
/// Below this share of the threshold, in tenths, an alert is resolved: a value that goes up and down
/// around the threshold is one crossing.
const RESOLVED_TENTHS: u128 = 9;
/// From this processor time on, in percent of a core, an execution is not idle.
const ACTIVE_CPU_PERCENT: f32 = 1.0;

/// All kinds, in the order of their slots.
const KINDS: [AlertKind; 5] = [
    AlertKind::Cpu,
    AlertKind::Memory,
    AlertKind::Disk,
    AlertKind::RunTime,
    AlertKind::Idle,
];

/// What is known of an execution at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageObservation {
    /// The moment.
    pub at: Timestamp,
    /// When it was started; none before that.
    pub started_at: Option<Timestamp>,
    /// Processor time in percent of one core since the last observation; none where it is unknown.
    pub cpu_percent: Option<f32>,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// Bytes by which its workspace has grown; none where that is not measured.
    pub disk_bytes: Option<u64>,
    /// Bytes of output so far; none where they are not known.
    pub output_bytes: Option<u64>,
}

/// An alert that was raised or resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertTransition {
    /// What it is about.
    pub kind: AlertKind,
    /// What happened.
    pub state: AlertState,
    /// The value, in the unit of the kind.
    pub value: u64,
    /// The threshold, in that unit.
    pub threshold: u64,
}

/// Which thresholds of one execution are crossed.
#[derive(Debug, Clone, Default)]
pub struct AlertCrossings {
    crossings: [Crossing; KINDS.len()],
    /// None before the first observation.
    idle: Option<IdleSpan>,
    /// Whether an earlier engine raised the alert for idleness, and nothing was seen to end that.
    was_idle: bool,
}

/// A time without output and work.
#[derive(Debug, Clone, Copy)]
struct IdleSpan {
    output_bytes: u64,
    since: Timestamp,
}

#[derive(Debug, Clone, Copy, Default)]
struct Crossing {
    is_raised: bool,
    /// Observations above the threshold in a row.
    above: u8,
}

impl AlertCrossings {
    /// Those of an execution of which an earlier engine raised these alerts.
    #[must_use]
    pub fn raised_before(kinds: &[AlertKind]) -> Self {
        let mut crossings = Self::default();
        for (crossing, kind) in crossings.crossings.iter_mut().zip(KINDS) {
            crossing.is_raised = kinds.contains(&kind);
        }
        crossings.was_idle = kinds.contains(&AlertKind::Idle);
        crossings
    }

    /// What an observation changes. A value that is not known changes nothing.
    pub fn observe(
        &mut self,
        thresholds: &AlertThresholds,
        observation: &UsageObservation,
    ) -> Vec<AlertTransition> {
        let idle_ms = self.idle_ms(observation);
        let value_of = |kind| match kind {
            AlertKind::Cpu => observation.cpu_percent.and_then(whole_percent),
            AlertKind::Memory => Some(observation.memory_bytes),
            AlertKind::Disk => observation.disk_bytes,
            AlertKind::RunTime => {
                let started_at = observation.started_at?;
                Some(as_millis(between(started_at, observation.at)))
            }
            AlertKind::Idle => idle_ms,
        };
        let mut transitions = Vec::new();
        for (crossing, kind) in self.crossings.iter_mut().zip(KINDS) {
            let Some((value, threshold)) = value_of(kind).zip(thresholds.of(kind)) else {
                continue;
            };
            let needed = if kind == AlertKind::Cpu {
                CPU_SAMPLES
            } else {
                1
            };
            transitions.extend(crossing.observe(value, threshold, needed).map(|state| {
                AlertTransition {
                    kind,
                    state,
                    value,
                    threshold,
                }
            }));
        }
        transitions
    }

    /// For how long there was neither output nor work; none where the output is not known, and where it
    /// began under an earlier engine, which does not say when.
    fn idle_ms(&mut self, observation: &UsageObservation) -> Option<u64> {
        let output_bytes = observation.output_bytes?;
        let is_active = observation
            .cpu_percent
            .is_some_and(|percent| percent >= ACTIVE_CPU_PERCENT);
        let since = match self.idle {
            Some(idle) if idle.output_bytes == output_bytes && !is_active => idle.since,
            None if !is_active => observation.at,
            Some(_) | None => {
                self.was_idle = false;
                observation.at
            }
        };
        self.idle = Some(IdleSpan {
            output_bytes,
            since,
        });
        (!self.was_idle).then(|| as_millis(between(since, observation.at)))
    }
}

impl Crossing {
    fn observe(&mut self, value: u64, threshold: u64, needed: u8) -> Option<AlertState> {
        if value < threshold {
            self.above = 0;
            let is_well_below = u128::from(value) * 10 < u128::from(threshold) * RESOLVED_TENTHS;
            if self.is_raised && is_well_below {
                self.is_raised = false;
                return Some(AlertState::Resolved);
            }
            return None;
        }
        self.above = self.above.saturating_add(1).min(needed);
        if self.is_raised || self.above < needed {
            return None;
        }
        self.is_raised = true;
        Some(AlertState::Raised)
    }
}

/// A percentage in whole numbers; none of what is no number.
fn whole_percent(percent: f32) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a finite number from 0 on; more than fits becomes the largest number"
    )]
    (percent.is_finite() && percent >= 0.0).then_some(percent as u64)
}
