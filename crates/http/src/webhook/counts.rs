//! How deliveries ended, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of alerts since the daemon started.
#[derive(Debug, Default)]
pub struct WebhookCounts {
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl WebhookCounts {
    pub(super) fn count_delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_failed(&self, count: u64) {
        self.failed.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// By outcome: accepted by the receiver, given up, and lost because too many waited.
    pub(crate) fn by_outcome(&self) -> [(&'static str, u64); 3] {
        [
            ("delivered", self.delivered.load(Ordering::Relaxed)),
            ("failed", self.failed.load(Ordering::Relaxed)),
            ("dropped", self.dropped.load(Ordering::Relaxed)),
        ]
    }
}
