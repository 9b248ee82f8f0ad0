//! The notifications of every session, and the channels that announce them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_engine::{Engine, ExecutionInfo};
use ostler_model::id::IdRef;
use ostler_model::{Caller, ErrorCode, ExecutionId, Owner, Principal, Scope, SessionName};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event_feed;
use super::notification::{AgentNotification, ServiceHealth};
use super::queue::NotificationQueue;
use crate::error::ApiError;

/// Sessions with notifications; beyond, the least recently used one is dropped.
const MAX_SESSIONS: usize = 1_024;
/// Patterns one session may watch for at a time.
pub(super) const WATCHES_PER_SESSION: usize = 16;
/// Resources the clients of one session may be subscribed to at a time.
const SUBSCRIPTIONS_PER_SESSION: usize = 256;

/// Ends, crashes and matched patterns, per session, until the agent is notified.
#[derive(Debug)]
pub(in crate::mcp) struct Notifications {
    pub(super) hub: Arc<NotificationHub>,
    pub(super) engine: Engine,
    /// The event feed and the pattern watches.
    pub(super) tasks: TaskTracker,
    pub(super) closing: CancellationToken,
}

/// The shared part.
#[derive(Debug, Default)]
pub(super) struct NotificationHub(Mutex<HubInner>);

#[derive(Debug, Default)]
struct HubInner {
    principals: HashMap<Principal, PrincipalState>,
    /// Counts uses, to find the least recently used session.
    clock: u64,
}

/// The state of one principal.
#[derive(Debug, Default)]
struct PrincipalState {
    sessions: HashMap<Option<SessionName>, NotifiedSession>,
    /// Changes with every start and end of the principal's executions.
    list_changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct NotifiedSession {
    queue: NotificationQueue,
    project: Option<String>,
    /// Whether a client connected, and the ends missed before were looked for.
    was_entered: bool,
    watches: usize,
    subscriptions: usize,
    last_used: u64,
    /// Changes with every start and end of the session's executions.
    list_changes: watch::Sender<u64>,
    /// Changes when there is something to push.
    push_changes: watch::Sender<u64>,
}

impl Notifications {
    /// Starts to read engine events, on the current runtime, until it is dropped.
    pub(in crate::mcp) fn new(engine: Engine) -> Self {
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
    pub(in crate::mcp) async fn enter_session(&self, caller: &Caller) {
        let first = self.hub.lock().enter_session(caller);
        if first {
            event_feed::add_missed_ends(&self.hub, &self.engine, caller, |info| info.recovered)
                .await;
        }
    }

    /// A tool answer shows `info` to this caller: no notification of its end, or of its state as a
    /// service, is needed any more. Nothing to do for other states.
    pub(in crate::mcp) fn mark_notified(&self, caller: &Caller, info: &ExecutionInfo) {
        let health = ServiceHealth::of(info);
        if health.is_none() && !info.state.is_finished() {
            return;
        }
        if let Some(session) = self.hub.lock().session(&caller.owner) {
            match health {
                Some(standing) => session.queue.mark_health_notified(info.id, standing),
                None => session.queue.mark_end_notified(info.id),
            }
        }
    }

    /// The id of this execution has just been published. If it has ended since the answer was made,
    /// and the answer did not show that, the end is queued.
    pub(in crate::mcp) async fn published(&self, caller: &Caller, id: ExecutionId) {
        match self.engine.info(caller, &id.to_string()) {
            Ok(info) if info.state.is_finished() && self.hub.accepts_end(&info.owner, id) => {
                event_feed::add_end(&self.hub, &self.engine, &info).await;
            }
            Ok(info) => {
                if let Some(item) = AgentNotification::service(&info) {
                    self.hub.push(&info.owner, item);
                }
            }
            Err(_) => {}
        }
    }

    /// Takes everything queued for this caller as one line; it counts as delivered.
    pub(in crate::mcp) fn take_line(&self, caller: &Caller) -> Option<String> {
        self.hub.lock().session(&caller.owner)?.queue.take_line()
    }

    /// A call with these arguments is under way. It reports the ends of the executions they name
    /// itself, so nothing is pushed for them until the guard drops.
    #[must_use]
    pub(in crate::mcp) fn suppress_named(
        &self,
        caller: &Caller,
        arguments: &Map<String, Value>,
    ) -> SuppressGuard {
        self.suppress(caller, arguments.values().flat_map(short_ids).collect())
    }

    /// As [`Notifications::suppress_named`], for a call that names an execution in another way.
    #[must_use]
    pub(in crate::mcp) fn suppress_for(&self, caller: &Caller, id: ExecutionId) -> SuppressGuard {
        self.suppress(caller, vec![id.short_bits()])
    }

    fn suppress(&self, caller: &Caller, bits: Vec<u64>) -> SuppressGuard {
        if !bits.is_empty()
            && let Some(session) = self.hub.lock().session(&caller.owner)
        {
            session.queue.suppress(&bits);
        }
        SuppressGuard {
            hub: Arc::clone(&self.hub),
            owner: (!bits.is_empty()).then(|| caller.owner.clone()),
            bits,
        }
    }

    /// Everything kept for this caller, newest first; it counts as delivered.
    pub(in crate::mcp) fn read_all(&self, caller: &Caller) -> Vec<AgentNotification> {
        let mut board = self.hub.lock();
        let session = board.session(&caller.owner);
        session.map_or_else(Vec::new, |session| session.queue.read_all())
    }

    /// What is to be pushed to this caller and has a higher number than `after`.
    pub(in crate::mcp) fn pending_pushes(
        &self,
        caller: &Caller,
        after: u64,
    ) -> Vec<(u64, AgentNotification)> {
        let mut board = self.hub.lock();
        let session = board.session(&caller.owner);
        session.map_or_else(Vec::new, |session| session.queue.pending_pushes(after))
    }

    /// Changes when there is something to push to this caller.
    pub(in crate::mcp) fn push_changes(&self, caller: &Caller) -> ChangeWatcher {
        let mut board = self.hub.lock();
        board.touch(caller);
        ChangeWatcher::new(
            board
                .session(&caller.owner)
                .map(|it| it.push_changes.subscribe()),
        )
    }

    /// Changes with every start and end of what this caller sees.
    pub(in crate::mcp) fn list_changes(&self, caller: &Caller) -> ChangeWatcher {
        let mut board = self.hub.lock();
        board.touch(caller);
        ChangeWatcher::new(match caller.scope {
            Scope::Session => board
                .session(&caller.owner)
                .map(|it| it.list_changes.subscribe()),
            Scope::Principal => board
                .principal(&caller.owner)
                .map(|it| it.list_changes.subscribe()),
        })
    }

    /// Reserves so many subscriptions for this caller's session.
    ///
    /// # Errors
    /// When it has too many already.
    pub(in crate::mcp) fn reserve_subscriptions(
        &self,
        caller: &Caller,
        count: usize,
    ) -> Result<SubscriptionSlots, ApiError> {
        let mut board = self.hub.lock();
        board.touch(caller);
        if let Some(session) = board.session(&caller.owner) {
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
            owner: caller.owner.clone(),
            count,
        })
    }

    /// Forgets an ended session: a later one of the same name gets none of its notifications.
    pub(in crate::mcp) fn forget_session(&self, caller: &Caller) {
        let mut board = self.hub.lock();
        if let Some(realm) = board.principals.get_mut(&caller.owner.principal) {
            realm.sessions.remove(&caller.owner.session);
        }
    }

    /// Ends every task of the hub.
    pub(in crate::mcp) async fn close(&self) {
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

impl NotificationHub {
    fn lock(&self) -> HubGuard<'_> {
        HubGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a client of this owner's session ever connected.
    pub(super) fn has_session(&self, owner: &Owner) -> bool {
        self.lock().session(owner).is_some()
    }

    /// Whether the session would be notified of this execution's end.
    pub(super) fn accepts_end(&self, owner: &Owner, id: ExecutionId) -> bool {
        let mut board = self.lock();
        let session = board.session(owner);
        session.is_some_and(|session| session.queue.is_end_unknown(id))
    }

    /// Queues one notification for a known session.
    pub(super) fn push(&self, owner: &Owner, notification: AgentNotification) {
        if let Some(session) = self.lock().session(owner)
            && session.queue.push(notification)
        {
            bump(&session.push_changes);
        }
    }

    /// An execution of this owner started or ended.
    pub(super) fn notify_list_changed(&self, owner: &Owner) {
        let mut board = self.lock();
        let Some(realm) = board.principals.get_mut(&owner.principal) else {
            return;
        };
        bump(&realm.list_changes);
        if owner.session.is_some() {
            if let Some(session) = realm.sessions.get(&owner.session) {
                bump(&session.list_changes);
            }
        } else if owner.project.is_some() {
            let sessions = realm.sessions.values();
            sessions
                .filter(|session| session.project == owner.project)
                .for_each(|session| bump(&session.list_changes));
        }
    }

    /// Events were lost: wakes every watcher, and returns the known owners.
    pub(super) fn notify_all_changed(&self) -> Vec<Owner> {
        let board = self.lock();
        let mut owners = Vec::new();
        for (principal, realm) in &board.principals {
            bump(&realm.list_changes);
            for (name, session) in &realm.sessions {
                bump(&session.list_changes);
                owners.push(Owner {
                    principal: principal.clone(),
                    project: session.project.clone(),
                    session: name.clone(),
                    task: None,
                    channel: ostler_model::RequestChannel::Local,
                });
            }
        }
        owners
    }

    /// Reserves a slot for a pattern watch.
    pub(super) fn reserve_watch(&self, caller: &Caller) -> Result<(), ApiError> {
        let mut board = self.lock();
        board.touch(caller);
        let Some(session) = board.session(&caller.owner) else {
            return Ok(());
        };
        if session.watches >= WATCHES_PER_SESSION {
            let message = format!(
                "{} patterns are watched for in this session; allowed: {WATCHES_PER_SESSION}",
                session.watches
            );
            let failure = ApiError::new(ErrorCode::QuotaExceeded, message);
            return Err(failure.with_hint("a watch ends with its match or its execution"));
        }
        session.watches += 1;
        Ok(())
    }

    pub(super) fn release_watch(&self, owner: &Owner) {
        if let Some(session) = self.lock().session(owner) {
            session.watches = session.watches.saturating_sub(1);
        }
    }
}

struct HubGuard<'a>(MutexGuard<'a, HubInner>);

impl std::ops::Deref for HubGuard<'_> {
    type Target = HubInner;

    fn deref(&self) -> &HubInner {
        &self.0
    }
}

impl std::ops::DerefMut for HubGuard<'_> {
    fn deref_mut(&mut self) -> &mut HubInner {
        &mut self.0
    }
}

impl HubInner {
    fn principal(&mut self, owner: &Owner) -> Option<&mut PrincipalState> {
        self.principals.get_mut(&owner.principal)
    }

    fn session(&mut self, owner: &Owner) -> Option<&mut NotifiedSession> {
        self.principal(owner)?.sessions.get_mut(&owner.session)
    }

    /// Registers a client of the session; true the first time.
    fn enter_session(&mut self, caller: &Caller) -> bool {
        self.touch(caller);
        let session = self.session(&caller.owner);
        session.is_some_and(|session| !std::mem::replace(&mut session.was_entered, true))
    }

    /// Marks the session as used.
    fn touch(&mut self, caller: &Caller) {
        self.clock += 1;
        let now = self.clock;
        if let Some(session) = self.session(&caller.owner) {
            session.last_used = now;
            return;
        }
        self.evict_oldest();
        let realm = self.principals.entry(caller.owner.principal.clone());
        let session = NotifiedSession {
            project: caller.owner.project.clone(),
            last_used: now,
            ..NotifiedSession::default()
        };
        let sessions = &mut realm.or_default().sessions;
        sessions.insert(caller.owner.session.clone(), session);
    }

    /// Drops the least recently used session when there are too many.
    fn evict_oldest(&mut self) {
        let count: usize = self.principals.values().map(|it| it.sessions.len()).sum();
        if count < MAX_SESSIONS {
            return;
        }
        let all = self.principals.iter().flat_map(|(principal, realm)| {
            let sessions = realm.sessions.iter();
            sessions.map(move |(name, session)| (principal, name, session))
        });
        let idle = all.filter(|(_, _, session)| session.is_idle());
        let oldest = idle.min_by_key(|(_, _, session)| session.last_used);
        let oldest = oldest.map(|(principal, name, _)| (principal.clone(), name.clone()));
        if let Some((principal, name)) = oldest
            && let Some(realm) = self.principals.get_mut(&principal)
        {
            realm.sessions.remove(&name);
        }
    }
}

impl NotifiedSession {
    fn is_idle(&self) -> bool {
        let receivers = self.list_changes.receiver_count() + self.push_changes.receiver_count();
        receivers == 0 && self.watches == 0 && self.subscriptions == 0
    }
}

fn bump(sender: &watch::Sender<u64>) {
    sender.send_modify(|version| *version += 1);
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

/// While it exists, a call about some executions is under way.
#[derive(Debug)]
pub(in crate::mcp) struct SuppressGuard {
    hub: Arc<NotificationHub>,
    /// None when the call names no execution.
    owner: Option<Owner>,
    bits: Vec<u64>,
}

impl Drop for SuppressGuard {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner
            && let Some(session) = self.hub.lock().session(owner)
            && session.queue.unsuppress(&self.bits)
        {
            bump(&session.push_changes);
        }
    }
}

/// Reserved subscriptions, released on drop.
#[derive(Debug)]
pub(in crate::mcp) struct SubscriptionSlots {
    hub: Arc<NotificationHub>,
    owner: Owner,
    count: usize,
}

impl Drop for SubscriptionSlots {
    fn drop(&mut self) {
        if let Some(session) = self.hub.lock().session(&self.owner) {
            session.subscriptions = session.subscriptions.saturating_sub(self.count);
        }
    }
}

/// Watches a counter; several changes between two reads count as one.
#[derive(Debug)]
pub(in crate::mcp) struct ChangeWatcher {
    changes: Option<watch::Receiver<u64>>,
    seen_version: u64,
}

impl ChangeWatcher {
    fn new(changes: Option<watch::Receiver<u64>>) -> Self {
        let seen = changes.as_ref().map_or(0, |changes| *changes.borrow());
        Self {
            changes,
            seen_version: seen,
        }
    }

    /// Marks everything up to now as seen.
    pub(in crate::mcp) fn mark_seen(&mut self) {
        if let Some(changes) = &self.changes {
            self.seen_version = *changes.borrow();
        }
    }

    /// Waits for a change; false when there will be none. Cancel safe.
    pub(in crate::mcp) async fn changed(&mut self) -> bool {
        let seen_version = self.seen_version;
        match &mut self.changes {
            Some(changes) => changes
                .wait_for(|version| *version != seen_version)
                .await
                .is_ok(),
            None => false,
        }
    }
}
