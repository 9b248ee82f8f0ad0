//! One connection of the handshake era: what it is told without asking. Dropped with the
//! connection, and with it every task of it.
#![expect(
    deprecated,
    reason = "log messages are deprecated in the newest revision and all there is in older ones"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ostler_model::Caller;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::follow::{self, Followed};
use super::outlet::Outlet;
use crate::mcp::desk::Desk;
use crate::mcp::news::{Item, News};
use crate::mcp::resources::quota;

/// Who log messages come from.
const LOGGER: &str = "ostler";

/// The peer of one connection, and the tasks that tell it things.
#[derive(Debug)]
pub(in crate::mcp) struct Connection {
    desk: Desk,
    caller: Caller,
    peer: Peer<RoleServer>,
    /// The lowest level it wants to hear of.
    level: Arc<Mutex<LoggingLevel>>,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    running: JoinSet<()>,
    subscriptions: HashMap<String, AbortHandle>,
}

impl Connection {
    /// Begins to tell a peer its session's news and when there are other resources.
    pub(in crate::mcp) fn open(desk: &Desk, caller: &Caller, peer: Peer<RoleServer>) -> Self {
        let level = Arc::new(Mutex::new(LoggingLevel::Info));
        let mut tasks = Tasks::default();
        let outlet = Outlet::Peer(peer.clone());
        let changes = desk.news().list_changes(caller);
        tasks.running.spawn(follow::list(changes, outlet));
        let messages = tell_news(
            (desk.clone(), caller.clone()),
            peer.clone(),
            Arc::clone(&level),
        );
        tasks.running.spawn(messages);
        Self {
            desk: desk.clone(),
            caller: caller.clone(),
            peer,
            level,
            tasks: Mutex::new(tasks),
        }
    }

    /// `resources/subscribe`; again for the same resource changes nothing.
    pub(in crate::mcp) fn subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.sweep();
        if tasks.subscriptions.contains_key(uri) {
            return Ok(());
        }
        let followed = Followed::new(&self.desk, &self.caller, uri)?;
        let slots = self.desk.news().slots(&self.caller, 1).map_err(quota)?;
        let outlet = Outlet::Peer(self.peer.clone());
        let task = tasks.running.spawn(async move {
            let _slots = slots;
            followed.run(outlet).await;
        });
        tasks.subscriptions.insert(uri.to_owned(), task);
        Ok(())
    }

    /// `resources/unsubscribe`; of what was not subscribed to, it changes nothing.
    pub(in crate::mcp) fn unsubscribe(&self, uri: &str) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.sweep();
        if let Some(task) = tasks.subscriptions.remove(uri) {
            task.abort();
        }
    }

    /// `logging/setLevel`.
    pub(in crate::mcp) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }
}

impl Tasks {
    /// Lets go of what is over.
    fn sweep(&mut self) {
        while self.running.try_join_next().is_some() {}
        self.subscriptions.retain(|_, task| !task.is_finished());
    }
}

/// News as log messages, at once, each on its own.
async fn tell_news(
    (desk, caller): (Desk, Caller),
    peer: Peer<RoleServer>,
    level: Arc<Mutex<LoggingLevel>>,
) {
    let news: &News = desk.news();
    let mut changes = news.changes(&caller);
    let mut told = 0;
    loop {
        changes.look();
        for (number, item) in news.pushed(&caller, told) {
            told = number;
            let of = if item.failed {
                LoggingLevel::Warning
            } else {
                LoggingLevel::Info
            };
            let lowest = *level.lock().unwrap_or_else(PoisonError::into_inner);
            if severity(of) < severity(lowest) {
                continue;
            }
            let message = LoggingMessageNotificationParam::new(of, worded(item));
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

/// A service's event for programs with its words beside; of everything else the words alone.
fn worded(item: Item) -> Value {
    match item.data {
        Some(mut data) => {
            data["message"] = item.text.into();
            data
        }
        None => item.text.into(),
    }
}

/// RFC 5424, turned around: more is worse.
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
