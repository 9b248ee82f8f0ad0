//! [`WebhookSender`]: the task that posts alerts, one after the other.

use std::sync::Arc;

use ostler_engine::AlertNotice;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
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
                () = stop.cancelled() => return self.give_up(0, &mut alerts),
                notice = alerts.recv() => notice,
            };
            match notice {
                Ok(notice) => {
                    let delivery = Delivery::of(&notice);
                    let delivering = self.deliver(&delivery);
                    if stop.run_until_cancelled(delivering).await.is_none() {
                        return self.give_up(1, &mut alerts);
                    }
                }
                Err(RecvError::Lagged(count)) => self.drop_oldest(count),
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn drop_oldest(&self, count: u64) {
        self.counts.count_dropped(count);
        let url = &self.client.settings().url;
        tracing::warn!(count, %url, "alerts are not posted: too many wait");
    }

    /// Gives up the one that is being posted, if any, and those that wait.
    fn give_up(&self, posting: u64, alerts: &mut broadcast::Receiver<AlertNotice>) {
        let mut count = posting;
        for _ in 0..alerts.len() {
            match alerts.try_recv() {
                Ok(_) => count += 1,
                Err(TryRecvError::Lagged(dropped)) => self.drop_oldest(dropped),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if count > 0 {
            self.counts.count_failed(count);
            let url = &self.client.settings().url;
            tracing::warn!(count, %url, "alerts are not posted: the daemon ends");
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
                    return self.counts.count_failed(1);
                }
                NextStep::RetryAfter(delay) => sleep_until(Instant::now() + delay).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use ostler_model::owner::{Owner, Principal};
    use ostler_model::{AlertKind, AlertState, ExecutionId, RequestChannel};
    use tokio::net::TcpListener;

    use super::*;
    use crate::webhook::WebhookSecret;

    fn notice() -> AlertNotice {
        AlertNotice {
            at: Timestamp::UNIX_EPOCH,
            execution: ExecutionId::mint(),
            owner: Owner {
                principal: Principal::unix(0),
                project: None,
                session: None,
                task: None,
                channel: RequestChannel::Local,
            },
            command: String::new(),
            kind: AlertKind::Idle,
            state: AlertState::Raised,
            value: 2,
            threshold: 1,
        }
    }

    #[tokio::test]
    async fn what_waits_at_the_end_is_given_up_and_counted() {
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = WebhookSettings {
            url: format!("http://{}/", receiver.local_addr().unwrap())
                .parse()
                .unwrap(),
            secret: WebhookSecret::new(b"0123456789abcdef").unwrap(),
            ca_file: None,
        };
        let (alerts, _) = broadcast::channel(4);
        for waiting in [0, 1, 3, 4, 6_u64] {
            let sender = WebhookSender::new(settings.clone()).unwrap();
            let (counts, stop) = (sender.counts(), CancellationToken::new());
            let queue = alerts.subscribe();
            alerts.send(notice()).unwrap();
            let end = async {
                // The first one is being posted; nothing answers it.
                let _connection = receiver.accept().await.unwrap();
                for _ in 0..waiting {
                    alerts.send(notice()).unwrap();
                }
                stop.cancel();
            };
            tokio::join!(sender.run(queue, stop.clone()), end);
            let dropped = waiting.saturating_sub(4);
            let expected = [
                ("delivered", 0),
                ("failed", 1 + waiting - dropped),
                ("dropped", dropped),
            ];
            assert_eq!(counts.by_outcome(), expected, "{waiting}");
        }
    }
}
