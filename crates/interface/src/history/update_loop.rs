//! The loop that folds the ledger into the history.

use std::sync::Arc;
use std::time::Duration;

use ostler_store::{HistoryUpdater, UpdateOutcome};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::service::History;
use super::update_thread::UpdateThread;

/// How long entries are collected for one transaction.
const GROUP: Duration = Duration::from_secs(1);
/// The pause after a step, as a multiple of its duration, while no query waits: whatever the load,
/// the history takes a thirtieth of one processor. Priority alone is not enough: the scheduler lets
/// the thread finish its time slice while an answer waits.
const PAUSE_FACTOR: u32 = 30;
/// The wait after the first of several failures, and the longest one.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

impl History {
    /// Keeps the history up to date until `stop`; rows are kept for `retention`. Does nothing
    /// before the first change or query.
    pub async fn keep_updated(self, retention: Duration, stop: CancellationToken) {
        let Some(ledger) = self.engine.ledger() else {
            return;
        };
        let store = Arc::clone(&self.store);
        let updater = HistoryUpdater::new(ledger.independent(), store, retention);
        let thread = match UpdateThread::spawn(updater) {
            Ok(thread) => thread,
            Err(error) => return tracing::error!(%error, "no history: its thread cannot be made"),
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow(&thread) => {}
        }
        self.store.close();
        thread.join().await;
    }

    /// Updates after each change and query.
    async fn follow(&self, thread: &UpdateThread) {
        let mut end = self.engine.ledger_end();
        let mut queries = self.queries.subscribe();
        loop {
            let is_query = tokio::select! {
                changed = end.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    false
                }
                _ = queries.changed() => true,
            };
            if !is_query {
                // A query does not wait for the group to fill.
                tokio::select! {
                    () = sleep_until(Instant::now() + GROUP) => {}
                    _ = queries.changed() => {}
                }
            }
            let mut failures = 0;
            loop {
                let until = *end.borrow_and_update();
                let number = *queries.borrow_and_update();
                let begin = Instant::now();
                let Some(outcome) = thread.step(until).await else {
                    return self.publish_end();
                };
                if self.publish(outcome, number) {
                    break;
                }
                let progress = self.progress.borrow().clone();
                let pause = if progress.error.is_some() {
                    failures += 1;
                    retry_delay(failures)
                } else if progress.queries < number {
                    Duration::ZERO
                } else {
                    begin.elapsed() * PAUSE_FACTOR
                };
                tokio::select! {
                    () = sleep_until(Instant::now() + pause) => {}
                    _ = queries.changed() => {}
                }
            }
        }
    }

    /// Publishes that no step follows: the thread has ended by a panic.
    fn publish_end(&self) {
        self.progress.send_modify(|progress| {
            progress.queries = u64::MAX;
            progress.error = Some("its thread has ended: restart the daemon".to_owned());
        });
    }

    /// Publishes the outcome of a step that began after so many queries; returns whether everything
    /// is folded.
    fn publish(&self, outcome: UpdateOutcome, queries: u64) -> bool {
        let (folded, is_done, error) = match outcome {
            UpdateOutcome::UpToDate(position) => (position.0, true, None),
            UpdateOutcome::Advanced(position) => (position.0, false, None),
            UpdateOutcome::Restarted(reason) => {
                tracing::warn!(reason, "the history is made anew from the ledger");
                (0, false, Some(format!("it is being made anew: {reason}")))
            }
            UpdateOutcome::Failed(error) => {
                let folded = self.progress.borrow().folded;
                (folded, false, Some(error.to_string()))
            }
        };
        self.progress.send_modify(|progress| {
            if let Some(error) = &error
                && progress.error.as_ref() != Some(error)
            {
                tracing::error!(error, "the history is not up to date");
            }
            progress.folded = folded;
            if is_done || error.is_some() {
                progress.queries = queries;
            }
            progress.error = error;
        });
        is_done
    }
}

/// Doubled with each failure.
fn retry_delay(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    RETRY.0.saturating_mul(doubled).min(RETRY.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_minute() {
        let delays = [1, 2, 3, 7, 8, 100].map(|failures| retry_delay(failures).as_millis());
        assert_eq!(delays, [500, 1_000, 2_000, 32_000, 60_000, 60_000]);
    }
}
