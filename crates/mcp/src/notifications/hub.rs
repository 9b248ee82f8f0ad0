//! The table of sessions: their notifications, and the channels that announce them.

use std::collections::HashMap;
use std::sync::Arc;

use ostler_model::{Caller, ErrorCode, ExecutionId, Owner, Principal, ProjectSet, SessionName};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::notification::AgentNotification;
use super::queue::NotificationQueue;
use ostler_interface::error::ApiError;

/// Sessions with notifications; beyond, the least recently used one is dropped.
const MAX_SESSIONS: usize = 1_024;
/// Patterns one session may watch for at a time.
pub(super) const WATCHES_PER_SESSION: usize = 16;

/// The table, shared by the handle, the event feed and the pattern watches.
#[derive(Debug, Default)]
pub(super) struct NotificationHub(Mutex<HubInner>);

#[derive(Debug, Default)]
pub(super) struct HubInner {
    pub(super) principals: HashMap<Principal, PrincipalState>,
    /// Counts uses, to find the least recently used session.
    clock: u64,
}

/// The state of one principal.
#[derive(Debug, Default)]
pub(super) struct PrincipalState {
    pub(super) sessions: HashMap<NotifiedKey, NotifiedSession>,
    /// Changes with every start and end of the principal's executions.
    pub(super) list_changes: watch::Sender<u64>,
}

/// A session as clients see it that are limited to the same projects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NotifiedKey {
    pub(super) session: Option<SessionName>,
    projects: ProjectSet,
}

impl NotifiedKey {
    pub(super) fn of(caller: &Caller) -> Self {
        Self {
            session: caller.owner.session.clone(),
            projects: caller.projects.visible.clone(),
        }
    }

    /// Whether what this owner has belongs to the session, as these clients see it.
    fn includes(&self, owner: &Owner) -> bool {
        self.session == owner.session && self.projects.contains(owner.project.as_deref())
    }
}

#[derive(Debug, Default)]
pub(super) struct NotifiedSession {
    pub(super) queue: NotificationQueue,
    project: Option<String>,
    /// Whether a client connected, and missed ends were searched for.
    was_entered: bool,
    watches: usize,
    pub(super) subscriptions: usize,
    last_used: u64,
    /// Changes with every start and end of the session's executions.
    pub(super) list_changes: watch::Sender<u64>,
    /// Changes when there is something to push.
    pub(super) push_changes: watch::Sender<u64>,
}

impl NotificationHub {
    pub(super) fn lock(&self) -> HubGuard<'_> {
        HubGuard(self.0.lock())
    }

    /// Whether a client of this owner's session ever connected.
    pub(super) fn has_session(&self, owner: &Owner) -> bool {
        self.lock().sessions_of(owner).next().is_some()
    }

    /// Whether the session would be notified of this execution's end.
    pub(super) fn accepts_end(&self, owner: &Owner, id: ExecutionId) -> bool {
        let mut board = self.lock();
        let mut sessions = board.sessions_of(owner);
        sessions.any(|session| session.queue.is_end_unknown(id))
    }

    /// Queues one notification for those who know the owner's session and see its project.
    pub(super) fn push(&self, owner: &Owner, notification: &AgentNotification) {
        for session in self.lock().sessions_of(owner) {
            session.push(notification.clone());
        }
    }

    /// Queues one notification for this caller's session.
    pub(super) fn push_to(&self, caller: &Caller, notification: AgentNotification) {
        if let Some(session) = self.lock().session(caller) {
            session.push(notification);
        }
    }

    /// An execution of this owner started or ended.
    pub(super) fn notify_list_changed(&self, owner: &Owner) {
        let mut board = self.lock();
        let Some(realm) = board.principals.get_mut(&owner.principal) else {
            return;
        };
        bump(&realm.list_changes);
        let project = owner.project.as_deref();
        for (key, session) in &realm.sessions {
            let passed = owner.session.is_none() && project.is_some();
            let is_meant = if key.projects.is_all() {
                key.session == owner.session || (passed && session.project == owner.project)
            } else {
                key.projects.contains(project)
            };
            if is_meant {
                bump(&session.list_changes);
            }
        }
    }

    /// Events were lost: wakes every watcher, and returns the known owners.
    pub(super) fn notify_all_changed(&self) -> Vec<Owner> {
        let board = self.lock();
        let mut owners = Vec::new();
        for (principal, realm) in &board.principals {
            bump(&realm.list_changes);
            for (key, session) in &realm.sessions {
                bump(&session.list_changes);
                owners.push(Owner {
                    principal: principal.clone(),
                    project: session.project.clone(),
                    session: key.session.clone(),
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
        let Some(session) = board.session(caller) else {
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

    pub(super) fn release_watch(&self, caller: &Caller) {
        if let Some(session) = self.lock().session(caller) {
            session.watches = session.watches.saturating_sub(1);
        }
    }
}

pub(super) struct HubGuard<'a>(MutexGuard<'a, HubInner>);

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
    pub(super) fn principal(&mut self, owner: &Owner) -> Option<&mut PrincipalState> {
        self.principals.get_mut(&owner.principal)
    }

    /// The session of a caller.
    pub(super) fn session(&mut self, caller: &Caller) -> Option<&mut NotifiedSession> {
        let sessions = &mut self.principal(&caller.owner)?.sessions;
        sessions.get_mut(&NotifiedKey::of(caller))
    }

    /// The session of an owner, as each of its clients sees it.
    fn sessions_of(&mut self, owner: &Owner) -> impl Iterator<Item = &mut NotifiedSession> {
        let realm = self.principals.get_mut(&owner.principal).into_iter();
        let sessions = realm.flat_map(|realm| &mut realm.sessions);
        sessions
            .filter(|(key, _)| key.includes(owner))
            .map(|(_, session)| session)
    }

    /// Registers a client of the session; true the first time.
    pub(super) fn enter_session(&mut self, caller: &Caller) -> bool {
        self.touch(caller);
        let session = self.session(caller);
        session.is_some_and(|session| !std::mem::replace(&mut session.was_entered, true))
    }

    /// Marks the session as used.
    pub(super) fn touch(&mut self, caller: &Caller) {
        self.clock += 1;
        let now = self.clock;
        if let Some(session) = self.session(caller) {
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
        sessions.insert(NotifiedKey::of(caller), session);
    }

    /// Drops the least recently used session when there are too many.
    fn evict_oldest(&mut self) {
        let count: usize = self.principals.values().map(|it| it.sessions.len()).sum();
        if count < MAX_SESSIONS {
            return;
        }
        let all = self.principals.iter().flat_map(|(principal, realm)| {
            let sessions = realm.sessions.iter();
            sessions.map(move |(key, session)| (principal, key, session))
        });
        let idle = all.filter(|(_, _, session)| session.is_idle());
        let oldest = idle.min_by_key(|(_, _, session)| session.last_used);
        let oldest = oldest.map(|(principal, key, _)| (principal.clone(), key.clone()));
        if let Some((principal, key)) = oldest
            && let Some(realm) = self.principals.get_mut(&principal)
        {
            realm.sessions.remove(&key);
        }
    }
}

impl NotifiedSession {
    fn push(&mut self, notification: AgentNotification) {
        if self.queue.push(notification) {
            bump(&self.push_changes);
        }
    }

    fn is_idle(&self) -> bool {
        let receivers = self.list_changes.receiver_count() + self.push_changes.receiver_count();
        receivers == 0 && self.watches == 0 && self.subscriptions == 0
    }
}

fn bump(sender: &watch::Sender<u64>) {
    sender.send_modify(|version| *version += 1);
}

/// While it exists, a call about some executions is under way.
#[derive(Debug)]
pub(crate) struct SuppressGuard {
    pub(super) hub: Arc<NotificationHub>,
    /// None when the call names no execution.
    pub(super) caller: Option<Caller>,
    pub(super) bits: Vec<u64>,
}

impl Drop for SuppressGuard {
    fn drop(&mut self) {
        if let Some(caller) = &self.caller
            && let Some(session) = self.hub.lock().session(caller)
            && session.queue.unsuppress(&self.bits)
        {
            bump(&session.push_changes);
        }
    }
}

/// Reserved subscriptions, released on drop.
#[derive(Debug)]
pub(crate) struct SubscriptionSlots {
    pub(super) hub: Arc<NotificationHub>,
    pub(super) caller: Caller,
    pub(super) count: usize,
}

impl Drop for SubscriptionSlots {
    fn drop(&mut self) {
        if let Some(session) = self.hub.lock().session(&self.caller) {
            session.subscriptions = session.subscriptions.saturating_sub(self.count);
        }
    }
}

/// Watches a counter; several changes between two reads count as one.
#[derive(Debug)]
pub(crate) struct ChangeWatcher {
    changes: Option<watch::Receiver<u64>>,
    seen_version: u64,
}

impl ChangeWatcher {
    pub(super) fn new(changes: Option<watch::Receiver<u64>>) -> Self {
        let seen = changes.as_ref().map_or(0, |changes| *changes.borrow());
        Self {
            changes,
            seen_version: seen,
        }
    }

    /// Marks everything up to now as notified.
    pub(crate) fn mark_seen(&mut self) {
        if let Some(changes) = &self.changes {
            self.seen_version = *changes.borrow();
        }
    }

    /// Waits for a change; false when there will be none. Cancel safe.
    pub(crate) async fn changed(&mut self) -> bool {
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
