//! The loss of a shim: its tree is swept, and how its attempt ended is reported.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::ProcessEvent;
use tokio::time::{Instant, sleep_until};

use super::connection::ShimConnection;
use super::recovery;
use super::shim_manager::ShimManager;
use super::zygote_client::ZygoteClient;

/// How long a zygote may take to sweep the tree of a killed shim, in milliseconds.
const SWEEP_WAIT_MS: u64 = 5_000;

impl ShimManager {
    /// Handles the loss of a shim: its tree is swept, and the receiver of its events is notified.
    pub(super) async fn on_shim_lost(
        self: &Arc<Self>,
        shim: &Arc<ShimConnection>,
        zygote: Option<Arc<ZygoteClient>>,
    ) {
        self.pool.remove(shim);
        let swept = match (shim.pid, zygote) {
            (Some(pid), Some(zygote)) => self.wait_reaped(pid, &zygote).await,
            (Some(_) | None, _) => false,
        };
        let Some(attempt) = shim.take_attempt() else {
            return;
        };
        self.pool.release();
        self.process_trees.forget(attempt.id);
        let record = recovery::recover_exit_record(self, &attempt, !swept).await;
        if record.is_none() {
            tracing::warn!(id = %attempt.id, shim = shim.pid, "a shim was killed, its tree is ended");
        }
        let event = record.map_or(ProcessEvent::Lost, |record| ProcessEvent::Exited {
            record: Box::new(record),
            idle: false,
        });
        if let Some(events) = attempt.events {
            let _closed = events.send(event.into()).await;
        }
    }

    /// Waits until the zygote has swept what a shim left; false when it cannot any more.
    async fn wait_reaped(&self, pid: u32, zygote: &ZygoteClient) -> bool {
        let deadline = Instant::now() + Duration::from_millis(SWEEP_WAIT_MS);
        loop {
            let reaped = self.reaped_notify.notified();
            tokio::pin!(reaped);
            reaped.as_mut().enable();
            if self.reaped.lock().remove(&pid) {
                return true;
            }
            tokio::select! {
                () = reaped => {}
                () = zygote.dead.cancelled() => return self.reaped.lock().remove(&pid),
                () = self.stop.cancelled() => return false,
                () = sleep_until(deadline) => return false,
            }
        }
    }
}
