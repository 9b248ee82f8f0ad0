//! What the rest of the crate does with notifications.

use std::sync::Arc;

use ostler_engine::{Engine, ExecutionInfo};
use ostler_model::id::IdRef;
use ostler_model::{Caller, ErrorCode, ExecutionId, Scope};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event_feed;
use super::hub::{ChangeWatcher, NotificationHub, NotifiedKey, SubscriptionSlots, SuppressGuard};
use super::notification::{AgentNotification, ServiceHealth};
use ostler_interface::error::ApiError;

/// Resources the clients of one session may be subscribed to at a time.
const SUBSCRIPTIONS_PER_SESSION: usize = 256;

/// Ends, crashes and matched patterns, per session, until the agent is notified.
#[derive(Debug)]
pub(crate) struct Notifications {
    pub(super) hub: Arc<NotificationHub>,
    pub(super) engine: Engine,
    /// The event feed and the pattern watches.
    pub(super) tasks: TaskTracker,
    pub(super) closing: CancellationToken,
}

impl Notifications {
    /// Starts to read engine events, on the current runtime, until it is dropped.
    pub(crate) fn new(engine: Engine) -> Self {
        let notifications = Self {
            hub: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            engine,
        };
        let feed = event_feed::run(
            Arc::clone(&notifications.hub),
            notifications.engine.clone(),
            notifications.engine.subscribe(),
        );
        let closing = notifications.closing.clone();
        notifications
            .tasks
            .spawn(async move { closing.run_until_cancelled(feed).await });
        notifications
    }

    /// Registers a client of this session. The first time, notifications are created for executions
    /// that an earlier daemon left running and that have ended since. An end that an earlier daemon
    /// itself recorded is not repeated, whether or not the agent was notified.
    pub(crate) async fn enter_session(&self, caller: &Caller) {
        let first = self.hub.lock().enter_session(caller);
        if first {
            event_feed::add_missed_ends(&self.hub, &self.engine, caller, |info| info.recovered)
                .await;
        }
    }

    /// A tool answer shows `info` to this caller: no notification of its end, or of its state as a
    /// service, is needed any more. Nothing to do for other states.
    pub(crate) fn mark_notified(&self, caller: &Caller, info: &ExecutionInfo) {
        let health = ServiceHealth::of(info);
        if health.is_none() && !info.state.is_finished() {
            return;
        }
        if let Some(session) = self.hub.lock().session(caller) {
            match health {
                Some(standing) => session.queue.mark_health_notified(info.id, standing),
                None => session.queue.mark_end_notified(info.id),
            }
        }
    }

    /// The id of this execution has just been published. If it has ended since the answer was made,
    /// and the answer did not show that, the end is queued.
    pub(crate) async fn published(&self, caller: &Caller, id: ExecutionId) {
        match self.engine.info(caller, &id.to_string()) {
            Ok(info) if info.state.is_finished() && self.hub.accepts_end(&info.owner, id) => {
                event_feed::add_end(&self.hub, &self.engine, &info).await;
            }
            Ok(info) => {
                if let Some(item) = AgentNotification::service(&info) {
                    self.hub.push(&info.owner, &item);
                }
            }
            Err(_) => {}
        }
    }

    /// Takes everything queued for this caller as one line; it counts as delivered.
    pub(crate) fn take_line(&self, caller: &Caller) -> Option<String> {
        self.hub.lock().session(caller)?.queue.take_line()
    }

    /// A call with these arguments is under way. It reports the ends of the executions they name
    /// itself, so nothing is pushed for them until the guard drops.
    #[must_use]
    pub(crate) fn suppress_named(
        &self,
        caller: &Caller,
        arguments: &Map<String, Value>,
    ) -> SuppressGuard {
        self.suppress(caller, arguments.values().flat_map(short_ids).collect())
    }

    /// As [`Notifications::suppress_named`], for a call that names an execution in another way.
    #[must_use]
    pub(crate) fn suppress_for(&self, caller: &Caller, id: ExecutionId) -> SuppressGuard {
        self.suppress(caller, vec![id.short_bits()])
    }

    fn suppress(&self, caller: &Caller, bits: Vec<u64>) -> SuppressGuard {
        if !bits.is_empty()
            && let Some(session) = self.hub.lock().session(caller)
        {
            session.queue.suppress(&bits);
        }
        SuppressGuard {
            hub: Arc::clone(&self.hub),
            caller: (!bits.is_empty()).then(|| caller.clone()),
            bits,
        }
    }

    /// Everything kept for this caller, newest first; it counts as delivered.
    pub(crate) fn read_all(&self, caller: &Caller) -> Vec<AgentNotification> {
        let mut board = self.hub.lock();
        let session = board.session(caller);
        session.map_or_else(Vec::new, |session| session.queue.read_all())
    }

    /// The notifications to push to this caller with a higher number than `after`.
    pub(crate) fn pending_pushes(
        &self,
        caller: &Caller,
        after: u64,
    ) -> Vec<(u64, AgentNotification)> {
        let mut board = self.hub.lock();
        let session = board.session(caller);
        session.map_or_else(Vec::new, |session| session.queue.pending_pushes(after))
    }

    /// Changes when there is something to push to this caller.
    pub(crate) fn push_changes(&self, caller: &Caller) -> ChangeWatcher {
        let mut board = self.hub.lock();
        board.touch(caller);
        ChangeWatcher::new(board.session(caller).map(|it| it.push_changes.subscribe()))
    }

    /// Changes with every start and end of what this caller sees.
    pub(crate) fn list_changes(&self, caller: &Caller) -> ChangeWatcher {
        let mut board = self.hub.lock();
        board.touch(caller);
        ChangeWatcher::new(match caller.scope {
            Scope::Principal if caller.sees_all() => board
                .principal(&caller.owner)
                .map(|it| it.list_changes.subscribe()),
            Scope::Session | Scope::Principal => {
                board.session(caller).map(|it| it.list_changes.subscribe())
            }
        })
    }

    /// Reserves `count` subscriptions for this caller's session.
    ///
    /// # Errors
    /// When it has too many already.
    pub(crate) fn reserve_subscriptions(
        &self,
        caller: &Caller,
        count: usize,
    ) -> Result<SubscriptionSlots, ApiError> {
        let mut board = self.hub.lock();
        board.touch(caller);
        if let Some(session) = board.session(caller) {
            if session.subscriptions + count > SUBSCRIPTIONS_PER_SESSION {
                let message = format!(
                    "{} subscriptions of this session are open; allowed: \
                     {SUBSCRIPTIONS_PER_SESSION}",
                    session.subscriptions
                );
                let failure = ApiError::new(ErrorCode::QuotaExceeded, message);
                return Err(failure.with_hint("end some; proc:// stands for every execution"));
            }
            session.subscriptions += count;
        }
        Ok(SubscriptionSlots {
            hub: Arc::clone(&self.hub),
            caller: caller.clone(),
            count,
        })
    }

    /// Forgets an ended session: a later one of the same name gets none of its notifications.
    pub(crate) fn forget_session(&self, caller: &Caller) {
        let mut board = self.hub.lock();
        let Some(realm) = board.principals.get_mut(&caller.owner.principal) else {
            return;
        };
        if caller.projects.visible.is_all() {
            let ended = &caller.owner.session;
            realm.sessions.retain(|key, _| key.session != *ended);
        } else {
            realm.sessions.remove(&NotifiedKey::of(caller));
        }
    }

    /// Ends every task of the hub.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Notifications {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// The ids in an argument, by short bits; an argument may be a list.
fn short_ids(argument: &Value) -> Vec<u64> {
    let id = |value: &Value| match value.as_str()?.parse().ok()? {
        IdRef::Full(id) => Some(id.short_bits()),
        IdRef::Short(bits) => Some(bits),
    };
    match argument.as_array() {
        Some(items) => items.iter().filter_map(id).collect(),
        None => id(argument).into_iter().collect(),
    }
}
