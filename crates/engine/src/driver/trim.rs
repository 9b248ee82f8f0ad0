//! Keeping the output of a running command within head and tail.
//!
//! The shim only appends. While somebody watches, its marks tell how much there is; while
//! nobody does, the driver looks by itself, ever more rarely when little was printed: seven
//! times in the first two hours of a silent command, then once an hour.

use std::time::Duration;

use ostler_journal::retention::trim;
use ostler_model::event::TrimReason;
use tokio::time::Instant;

use crate::supervisor::Input;
use crate::terminal::SCREEN_UPKEEP_BYTES;

use super::run::Driver;

/// Until the first look at an unwatched journal, in seconds; doubled while little comes.
const FIRST_LOOK_S: u64 = 60;
/// The longest time between two looks, in seconds.
const LONGEST_LOOK_S: u64 = 3_600;
/// Growth that is worth a trim, at least.
const STEP_BYTES: u64 = 8 * 1024 * 1024;
/// And at least this part of the tail that is kept.
const STEP_PART: u64 = 8;
/// How long output waits to be dropped for its screen, in milliseconds.
const SCREEN_UPKEEP_MS: u64 = 2_000;

/// When to look, and what was seen.
#[derive(Debug)]
pub(super) struct Trimming {
    next: Instant,
    wait_s: u64,
    /// The journal's end at the last look that found it worth one.
    end: u64,
}

impl Trimming {
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now() + Duration::from_secs(FIRST_LOOK_S),
            wait_s: FIRST_LOOK_S,
            end: 0,
        }
    }

    /// When to look, if nobody watches.
    pub(super) const fn due(&self) -> Instant {
        self.next
    }
}

impl Driver {
    /// Looks at a journal nobody watches.
    pub(super) async fn look_for_trimming(&mut self) {
        let before = self.trimming.end;
        self.look_at_journal().await;
        let wait_s = if self.trimming.end > before {
            FIRST_LOOK_S
        } else {
            (self.trimming.wait_s * 2).min(LONGEST_LOOK_S)
        };
        self.trimming.wait_s = wait_s;
        self.trimming.next = Instant::now() + Duration::from_secs(wait_s);
    }

    /// Drops the middle once enough has come since the last time.
    pub(super) async fn trim(&mut self, end: u64) {
        let policy = self.core.settings.output;
        let step = STEP_BYTES.max(policy.tail_bytes / STEP_PART);
        if end < self.trimming.end.saturating_add(step) {
            return;
        }
        self.trimming.end = end;
        if end <= policy.head_bytes.saturating_add(policy.tail_bytes) {
            return;
        }
        self.keep_screen().await;
        let dir = self.entry.dir.clone();
        match tokio::task::spawn_blocking(move || trim(&dir, policy)).await {
            Ok(Ok(Some(gone))) => {
                let (from, to) = (gone.from, gone.to);
                let reason = TrimReason::Retention;
                self.feed(Input::Trimmed { from, to, reason }).await;
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::warn!(id = %self.entry.id, %error, "output cannot be trimmed");
            }
            Err(error) => tracing::error!(id = %self.entry.id, %error, "trimming failed"),
        }
    }
    /// Leaves a checkpoint of the screen behind what is about to go. Nothing else is done
    /// meanwhile, so that takes little time or is given up.
    async fn keep_screen(&self) {
        let kept = self
            .core
            .keep_screen_of_excess(&self.entry, SCREEN_UPKEEP_BYTES);
        let longest = Duration::from_millis(SCREEN_UPKEEP_MS);
        if tokio::time::timeout(longest, kept).await.is_err() {
            tracing::warn!(id = %self.entry.id, "output goes faster than its screen is kept");
        }
    }
}
