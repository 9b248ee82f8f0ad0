//! Trims the output of a running command to head and tail.
//!
//! The shim only appends. While there is a watcher, its output notifications report the amount;
//! otherwise the driver checks by itself, at growing intervals while little is printed: seven times
//! in the first two hours of a silent command, then once an hour.

use std::time::Duration;

use ostler_journal::retention::trim;
use ostler_model::event::TrimReason;
use tokio::time::Instant;

use crate::hooks::CheckpointEffort;
use crate::supervisor::SupervisorInput;

use super::event_loop::Driver;

/// The time until the first check of an unwatched journal, in seconds; doubled while little is
/// printed.
const FIRST_CHECK_S: u64 = 60;
/// The longest time between two checks, in seconds.
const CHECK_INTERVAL_MAX_S: u64 = 3_600;
/// Growth that is worth a trim, at least.
const STEP_BYTES: u64 = 8 * 1024 * 1024;
/// And at least this part of the tail that is kept.
const STEP_PART: u64 = 8;
/// How long output waits to be dropped for its screen, in milliseconds.
const CHECKPOINT_TIMEOUT_MS: u64 = 2_000;

/// When to check, and the state at the last check.
#[derive(Debug)]
pub(super) struct TrimSchedule {
    next_check: Instant,
    interval_s: u64,
    /// The journal's end at the last check that found enough new output.
    last_end: u64,
}

impl TrimSchedule {
    pub(super) fn new() -> Self {
        Self {
            next_check: Instant::now() + Duration::from_secs(FIRST_CHECK_S),
            interval_s: FIRST_CHECK_S,
            last_end: 0,
        }
    }

    /// When to check, if there is no watcher.
    pub(super) const fn due(&self) -> Instant {
        self.next_check
    }
}

impl Driver {
    /// Checks a journal without watchers.
    pub(super) async fn check_trim(&mut self) {
        let before = self.trim_schedule.last_end;
        self.refresh_journal_end().await;
        let interval_s = if self.trim_schedule.last_end > before {
            FIRST_CHECK_S
        } else {
            (self.trim_schedule.interval_s * 2).min(CHECK_INTERVAL_MAX_S)
        };
        self.trim_schedule.interval_s = interval_s;
        self.trim_schedule.next_check = Instant::now() + Duration::from_secs(interval_s);
    }

    /// Drops the middle once enough has come since the last time.
    pub(super) async fn trim(&mut self, end: u64) {
        let policy = self.core.settings.output;
        let step = STEP_BYTES.max(policy.tail_bytes / STEP_PART);
        if end < self.trim_schedule.last_end.saturating_add(step) {
            return;
        }
        self.trim_schedule.last_end = end;
        if end <= policy.head_bytes.saturating_add(policy.tail_bytes) {
            return;
        }
        self.checkpoint_screen().await;
        let _drop_guard = self.execution.begin_output_drop();
        let dir = self.execution.dir.clone();
        match tokio::task::spawn_blocking(move || trim(&dir, policy)).await {
            Ok(Ok(Some(gone))) => {
                let (from, to) = (gone.from, gone.to);
                let reason = TrimReason::Retention;
                self.step(SupervisorInput::Trimmed { from, to, reason })
                    .await;
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::warn!(id = %self.execution.id, %error, "output cannot be trimmed");
            }
            Err(error) => tracing::error!(id = %self.execution.id, %error, "trimming failed"),
        }
    }
    /// Stores a checkpoint of the screen before the output that it was parsed from is dropped. The
    /// driver does nothing else meanwhile, so this has a short timeout.
    async fn checkpoint_screen(&self) {
        let checkpoint = self
            .core
            .screens
            .checkpoint_before_trim(&self.execution, CheckpointEffort::Brief);
        let timeout = Duration::from_millis(CHECKPOINT_TIMEOUT_MS);
        if tokio::time::timeout(timeout, checkpoint).await.is_err() {
            tracing::warn!(id = %self.execution.id, "output goes faster than its screen is kept");
        }
    }
}
