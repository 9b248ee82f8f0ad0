//! Unsolicited messages on one connection of the handshake era. Dropped with the connection, and
//! with it all of its tasks.
#![expect(
    deprecated,
    reason = "log messages are deprecated in the newest revision and all there is in older ones"
)]

use std::collections::HashMap;
use std::sync::Arc;

use ostler_model::Caller;
use parking_lot::Mutex;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ResourceUpdatedNotificationParam,
};
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::resource_watch::{self, WatchedResource};
use super::update_sink::UpdateSink;
use crate::notifications::{AgentNotification, Notifications};
use crate::resources::quota_error;
use crate::session_hooks::StandingRequests;
use crate::state::McpState;

/// The logger name of log messages.
const LOGGER: &str = "ostler";

/// The peer of one connection, and the tasks that send it updates.
#[derive(Debug)]
pub(crate) struct SubscribedConnection {
    state: McpState,
    caller: Caller,
    peer: Peer<RoleServer>,
    /// The lowest level of log messages to send.
    level: Arc<Mutex<LoggingLevel>>,
    tasks: Mutex<SubscriptionTasks>,
}

#[derive(Debug, Default)]
struct SubscriptionTasks {
    running: JoinSet<()>,
    subscriptions: HashMap<String, AbortHandle>,
}

impl SubscribedConnection {
    /// Starts to send a peer its session's notifications and changes of the resource list.
    pub(crate) fn open(mcp_state: &McpState, caller: &Caller, peer: Peer<RoleServer>) -> Self {
        let level = Arc::new(Mutex::new(LoggingLevel::Info));
        let mut tasks = SubscriptionTasks::default();
        let sink = UpdateSink::Peer(peer.clone());
        let changes = mcp_state.notifications().list_changes(caller);
        tasks
            .running
            .spawn(resource_watch::notify_list_changes(changes, sink));
        let messages = push_notifications(
            mcp_state.clone(),
            caller.clone(),
            peer.clone(),
            Arc::clone(&level),
        );
        tasks.running.spawn(messages);
        Self {
            state: mcp_state.clone(),
            caller: caller.clone(),
            peer,
            level,
            tasks: Mutex::new(tasks),
        }
    }

    /// Takes up what the client had requested of an earlier daemon, and says that each resource may
    /// have changed meanwhile.
    pub(crate) fn restore(&self, standing: &StandingRequests) {
        if let Some(level) = standing.level {
            self.set_level(level);
        }
        for uri in standing.subscriptions() {
            if let Err(error) = self.subscribe(uri) {
                tracing::debug!(uri, error = %error.message, "a subscription is not restored");
                continue;
            }
            let (peer, params) = (
                self.peer.clone(),
                ResourceUpdatedNotificationParam::new(uri),
            );
            self.tasks.lock().running.spawn(async move {
                if let Err(error) = peer.notify_resource_updated(params).await {
                    tracing::debug!(%error, "the client of a restored session is gone");
                }
            });
        }
    }

    /// `resources/subscribe`; repeating it for the same resource has no effect.
    pub(crate) fn subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        let mut tasks = self.tasks.lock();
        tasks.remove_finished();
        if tasks.subscriptions.contains_key(uri) {
            return Ok(());
        }
        let watched = WatchedResource::new(&self.state, &self.caller, uri)?;
        let slots = self
            .state
            .notifications()
            .reserve_subscriptions(&self.caller, 1)
            .map_err(quota_error)?;
        let sink = UpdateSink::Peer(self.peer.clone());
        let task = tasks.running.spawn(async move {
            let _slots = slots;
            watched.run(sink).await;
        });
        tasks.subscriptions.insert(uri.to_owned(), task);
        Ok(())
    }

    /// `resources/unsubscribe`; without a subscription it has no effect.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        let mut tasks = self.tasks.lock();
        tasks.remove_finished();
        if let Some(task) = tasks.subscriptions.remove(uri) {
            task.abort();
        }
    }

    /// Handles `logging/setLevel`.
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock() = level;
    }
}

impl SubscriptionTasks {
    /// Removes finished subscriptions.
    fn remove_finished(&mut self) {
        while self.running.try_join_next().is_some() {}
        self.subscriptions.retain(|_, task| !task.is_finished());
    }
}

/// Sends notifications as log messages, at once, each in its own message.
async fn push_notifications(
    state: McpState,
    caller: Caller,
    peer: Peer<RoleServer>,
    level: Arc<Mutex<LoggingLevel>>,
) {
    let notifications: &Notifications = state.notifications();
    let mut changes = notifications.push_changes(&caller);
    let mut last_pushed = 0;
    loop {
        changes.mark_seen();
        for (number, item) in notifications.pending_pushes(&caller, last_pushed) {
            last_pushed = number;
            let message_level = if item.failed {
                LoggingLevel::Warning
            } else {
                LoggingLevel::Info
            };
            let lowest = *level.lock();
            if severity(message_level) < severity(lowest) {
                continue;
            }
            let message = LoggingMessageNotificationParam::new(message_level, to_log_data(item));
            let sent = peer.notify_logging_message(message.with_logger(LOGGER));
            if sent.await.is_err() {
                return;
            }
        }
        if !changes.changed().await {
            return;
        }
    }
}

/// A service's event as JSON with its text; for everything else the text alone.
fn to_log_data(notification: AgentNotification) -> Value {
    match notification.data {
        Some(mut data) => {
            data["message"] = notification.text.into();
            data
        }
        None => notification.text.into(),
    }
}

/// The levels of RFC 5424 in reverse order: higher is more severe.
const fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
