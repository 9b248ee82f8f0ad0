//! The limit on a workspace's growth, enforced by accounting: the kernel does not count what one
//! process tree writes to a directory, so its size is measured, and only while there is a limit.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::duration::as_millis;
use ostler_model::{Capability, LimitKind, MissingCapability, SnapshotRequest, StopReason};
use tokio::time::Instant;

use crate::engine_inner::EngineInner;
use crate::execution::{DriverCommand, ExecutionHandle};

/// The longest pause between two measurements: while nothing grows.
const SAMPLE_INTERVAL_MAX: Duration = Duration::from_millis(2_000);
/// The shortest pause: while the limit comes near. A measurement that took longer than this is
/// followed by a pause of equal length, so that accounting takes at most half of one core.
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Measures until the execution has ended or exceeded its limit; then it is stopped.
pub(super) async fn enforce_disk_limit(
    core: Arc<EngineInner>,
    entry: Arc<ExecutionHandle>,
    limit_bytes: u64,
) {
    let mut live = entry.live.subscribe();
    let mut pause = SAMPLE_INTERVAL_MIN;
    let mut last = DiskSample::default();
    let mut loss = DiskLoss::None;
    loop {
        let due = Instant::now() + pause;
        let ended = live.wait_for(|live| live.state.is_finished() || live.driver_done);
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            _ended = ended => return,
            () = tokio::time::sleep_until(due) => {}
        }
        let began = Instant::now();
        let (grown, unmeasured) = disk_growth(&core, &entry).await.unzip();
        let unmeasured = unmeasured.flatten();
        let (next_loss, is_reported) = loss.next(unmeasured.is_some());
        loss = next_loss;
        // Such a command is not stopped: tools close directories on purpose.
        if let Some(reason) = unmeasured.filter(|_| is_reported) {
            let ability = Capability::DiskLimit;
            let lost = DriverCommand::CapabilityLost(MissingCapability { ability, reason });
            // The driver accepts no more commands: the execution has ended.
            let _over = entry.send_command(lost).await.is_err();
        }
        if let Some(grown) = grown {
            core.usage_monitor.set_disk_bytes(entry.id, grown);
        }
        if grown.is_some_and(|it| it > limit_bytes) {
            let limit = LimitKind::Disk;
            let order = StopReason::LimitHit { limit };
            let grace = core.grace_of(&entry.spec);
            // The driver accepts no more commands: the execution has ended.
            let _over = entry
                .send_command(DriverCommand::LimitHit(limit))
                .await
                .is_err()
                || entry
                    .send_command(DriverCommand::Stop { order, grace })
                    .await
                    .is_err();
            return;
        }
        let sample = DiskSample {
            bytes: grown.unwrap_or(last.bytes),
            pause,
        };
        pause = next_interval(last.bytes, sample, limit_bytes).max(began.elapsed());
        if loss == DiskLoss::Suspected {
            pause = SAMPLE_INTERVAL_MIN.max(began.elapsed());
        }
        last = sample;
    }
}

/// Whether a part of the workspace cannot be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskLoss {
    None,
    /// At the last measurement, which may have met a moment between two changes: the next one
    /// follows at once.
    Suspected,
    /// At two in succession, which was reported.
    Reported,
}

impl DiskLoss {
    /// The state after a measurement, and whether it is reported now.
    const fn next(self, is_unmeasured: bool) -> (Self, bool) {
        match (self, is_unmeasured) {
            (Self::Reported, _) => (Self::Reported, false),
            (Self::Suspected, true) => (Self::Reported, true),
            (Self::None, true) => (Self::Suspected, false),
            (Self::None | Self::Suspected, false) => (Self::None, false),
        }
    }
}

/// One measurement, and the pause before it.
#[derive(Debug, Clone, Copy, Default)]
struct DiskSample {
    bytes: u64,
    pause: Duration,
}

/// Half of the time in which the limit is reached at the rate of the last pause; twice the last
/// pause where nothing grew.
fn next_interval(last_bytes: u64, sample: DiskSample, limit: u64) -> Duration {
    let grown = sample.bytes.saturating_sub(last_bytes);
    let remaining = limit.saturating_sub(sample.bytes);
    if grown == 0 {
        return (sample.pause * 2).clamp(SAMPLE_INTERVAL_MIN, SAMPLE_INTERVAL_MAX);
    }
    let pause_ms = as_millis(sample.pause);
    let reached_ms = u128::from(remaining) * u128::from(pause_ms) / u128::from(grown);
    let half = u64::try_from(reached_ms / 2).unwrap_or(u64::MAX);
    Duration::from_millis(half).clamp(SAMPLE_INTERVAL_MIN, SAMPLE_INTERVAL_MAX)
}

/// The workspace's growth in bytes, and why it may be more; none where there is nothing to measure.
async fn disk_growth(core: &EngineInner, entry: &ExecutionHandle) -> Option<(u64, Option<String>)> {
    let request = SnapshotRequest {
        disk: true,
        ..SnapshotRequest::default()
    };
    let snapshot = core.backend.snapshot(entry.id, request).await.ok()?;
    Some((snapshot.disk_bytes?, snapshot.disk_unmeasured))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(before: u64, bytes: u64, pause_ms: u64, limit: u64) -> u64 {
        let pause = Duration::from_millis(pause_ms);
        let next = next_interval(before, DiskSample { bytes, pause }, limit);
        u64::try_from(next.as_millis()).expect("short")
    }

    #[test]
    fn a_loss_is_reported_once_and_at_the_second_measurement_in_succession() {
        let samples = [true, false, true, true, true, false, true, true];
        let mut loss = DiskLoss::None;
        let reported = samples.map(|is_unmeasured| {
            let (next, is_reported) = loss.next(is_unmeasured);
            loss = next;
            is_reported
        });
        let expected = [false, false, false, true, false, false, false, false];
        assert_eq!(reported, expected);
    }

    #[test]
    fn looks_come_sooner_the_nearer_the_limit_is() {
        assert_eq!(next(0, 0, 100, 1_000), 200, "nothing grows");
        assert_eq!(next(50, 50, 2_000, 1_000), 2_000, "not rarer than that");
        assert_eq!(
            next(0, 100, 200, 1_000),
            900,
            "half of the 1800 ms that are left"
        );
        assert_eq!(next(0, 900, 200, 1_000), 100, "not more often than that");
        assert_eq!(next(0, 1, 2_000, u64::MAX), 2_000);
        assert_eq!(next(0, 2_000, 100, 1_000), 100, "beyond it already");
        assert_eq!(next(900, 100, 400, 1_000), 800, "it became less");
    }
}
