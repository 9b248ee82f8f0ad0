//! [`WebhookSender`]: the task that posts alerts, one after the other.

use std::sync::Arc;

use ostler_engine::AlertNotice;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::client::WebhookClient;
use super::counts::WebhookCounts;
use super::delivery::Delivery;
use super::retry::{NextStep, next_step};
use super::settings::{WebhookError, WebhookSettings};

/// Posts alerts in their order. While one is tried again, later ones wait in the engine's channel,
/// which drops the oldest beyond its limit; those are counted.
#[derive(Debug)]
pub struct WebhookSender {
    client: WebhookClient,
    counts: Arc<WebhookCounts>,
}

impl WebhookSender {
    /// A sender with these settings.
    ///
    /// # Errors
    /// [`WebhookError::Certificates`].
    pub fn new(settings: WebhookSettings) -> Result<Self, WebhookError> {
        Ok(Self {
            client: WebhookClient::new(settings)?,
            counts: Arc::default(),
        })
    }

    /// How deliveries end.
    #[must_use]
    pub fn counts(&self) -> Arc<WebhookCounts> {
        Arc::clone(&self.counts)
    }

    /// Posts alerts until `stop`; what is not delivered by then is given up.
    pub async fn run(self, mut alerts: broadcast::Receiver<AlertNotice>, stop: CancellationToken) {
        loop {
            let notice = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                notice = alerts.recv() => notice,
            };
            match notice {
                Ok(notice) => {
                    let delivery = Delivery::of(&notice);
                    let delivering = self.deliver(&delivery);
                    if stop.run_until_cancelled(delivering).await.is_none() {
                        self.counts.count_failed();
                        tracing::warn!("an alert is not posted: the daemon ends");
                        return;
                    }
                }
                Err(RecvError::Lagged(count)) => {
                    self.counts.count_dropped(count);
                    let url = &self.client.settings().url;
                    tracing::warn!(count, %url, "alerts are not posted: too many wait");
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn deliver(&self, delivery: &Delivery) {
        let url = &self.client.settings().url;
        for attempt in 1.. {
            let outcome = self.client.attempt(delivery).await;
            match next_step(attempt, outcome, fastrand::f64()) {
                NextStep::Delivered => return self.counts.count_delivered(),
                NextStep::Failed => {
                    tracing::warn!(%url, attempt, ?outcome, "an alert is not posted");
                    return self.counts.count_failed();
                }
                NextStep::RetryAfter(delay) => sleep_until(Instant::now() + delay).await,
            }
        }
    }
}
