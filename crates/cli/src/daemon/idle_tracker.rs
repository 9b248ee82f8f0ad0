//! Counts connections, and detects idleness.

use std::time::Duration;

use tokio::sync::watch;

/// The number of connections.
#[derive(Debug, Clone)]
pub(crate) struct IdleTracker(watch::Sender<u64>);

/// One connection; dropping it ends it.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(watch::Sender<u64>);

impl IdleTracker {
    /// A tracker without connections.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Counts a connection.
    pub(crate) fn track(&self) -> ConnectionGuard {
        self.0.send_modify(|count| *count += 1);
        ConnectionGuard(self.0.clone())
    }

    /// The counter itself, for other components that count.
    pub(crate) fn count(&self) -> watch::Sender<u64> {
        self.0.clone()
    }

    /// Observes the number of connections.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Returns when no execution ran and no client was connected for `limit` without a break. One
/// timer, set when the last one ends; no polling.
pub(crate) async fn wait_idle(
    mut running: watch::Receiver<u64>,
    mut connections: watch::Receiver<u64>,
    limit: Duration,
) {
    loop {
        if !wait_zero(&mut running).await || !wait_zero(&mut connections).await {
            return std::future::pending().await;
        }
        if *running.borrow() != 0 {
            continue;
        }
        // A connection that opened and closed between two reads counts too.
        let activity = async {
            tokio::select! {
                changed = running.changed() => drop(changed),
                changed = connections.changed() => drop(changed),
            }
        };
        if tokio::time::timeout(limit, activity).await.is_err() {
            return;
        }
    }
}

/// Waits for zero; false when the counter will never change again.
async fn wait_zero(count: &mut watch::Receiver<u64>) -> bool {
    count.wait_for(|count| *count == 0).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const LIMIT: Duration = Duration::from_secs(600);

    fn virtual_time() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    }

    #[test]
    fn the_clock_begins_when_the_last_one_leaves() {
        virtual_time().block_on(async {
            let (presence, running) = (IdleTracker::new(), watch::Sender::new(1));
            let connection = presence.track();
            let begin = Instant::now();
            let leave = async {
                tokio::time::sleep_until(begin + LIMIT * 2).await;
                running.send_replace(0);
                tokio::time::sleep_until(begin + LIMIT * 3).await;
                drop(connection);
                tokio::time::sleep_until(begin + LIMIT * 3 + LIMIT / 2).await;
                drop(presence.track());
            };
            tokio::join!(
                leave,
                wait_idle(running.subscribe(), presence.watch(), LIMIT)
            );
            assert_eq!(begin.elapsed(), LIMIT * 4 + LIMIT / 2);
        });
    }
}
