//! Which sessions are in use, and how long others have been idle. Pure: the time is a parameter.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ostler_interface::project_access::ProjectAccess;
use ostler_model::SessionName;
use ostler_model::owner::Principal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::session_hooks::StandingRequests;

/// The most sessions of each kind.
pub(super) const SESSIONS: usize = 1_024;
/// The most sessions of each kind per principal, so that others find capacity.
pub(super) const SESSIONS_PER_PRINCIPAL: usize = SESSIONS / 4;

/// One session of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct SessionKey {
    pub(super) principal: Principal,
    pub(super) session: SessionName,
}

/// An MCP session of the handshake era.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct McpSession {
    /// Its principal, and the session its requests are in.
    pub(super) key: SessionKey,
    /// What the token that began it permits in projects; another token does not continue it.
    #[serde(default, skip_serializing_if = "ProjectAccess::is_default")]
    pub(super) access: ProjectAccess,
    /// Whether that session belongs to it alone, and ends with it.
    pub(super) own: bool,
    /// The parameters of its client's `initialize`.
    pub(super) initialize: Value,
    /// Its client's requests that hold until it ends.
    #[serde(flatten)]
    pub(super) standing: StandingRequests,
}

/// What a request uses while it is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum UsageKey {
    /// A named or shared session.
    Session(SessionKey),
    /// An MCP session, by its id.
    McpSession(String),
}

/// Why no further session is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionLimit {
    /// The total limit is reached.
    All,
    /// The principal's limit is reached.
    Principal,
}

/// The use of an entry by one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryUse {
    key: UsageKey,
    /// The number of the entry: a session that ended and begins again is another one.
    entry: u64,
}

/// How many requests use an entry, and since when it is idle.
#[derive(Debug, Clone, Copy)]
struct SessionUsage {
    /// Distinguishes the entries that have one key, one after the other.
    entry: u64,
    active: usize,
    idle_since: Instant,
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct SessionTable {
    usage: HashMap<UsageKey, SessionUsage>,
    /// The number of entries so far.
    entries: u64,
    mcp_sessions: HashMap<String, McpSession>,
    /// MCP sessions that make way for newer ones: they count no more, and are about to end.
    displaced: HashSet<String>,
    /// Sessions whose executions are being stopped.
    ending: HashSet<SessionKey>,
    /// When to check for idle sessions next; none while there is nothing to check.
    next_check: Option<Instant>,
    changed: bool,
}

impl SessionTable {
    /// A request starts to use an entry.
    pub(super) fn begin_use(&mut self, key: UsageKey, now: Instant) -> EntryUse {
        self.changed |= !self.has(&key);
        if let UsageKey::McpSession(id) = &key {
            // Found before it made way for another one: it stays.
            self.displaced.remove(id);
        }
        let usage = self.entry(key.clone(), now);
        usage.active += 1;
        let entry = usage.entry;
        EntryUse { key, entry }
    }

    /// The entry of this key, which is unused if it is a new one.
    fn entry(&mut self, key: UsageKey, now: Instant) -> &mut SessionUsage {
        let entries = &mut self.entries;
        self.usage.entry(key).or_insert_with(|| {
            *entries += 1;
            SessionUsage {
                entry: *entries,
                active: 0,
                idle_since: now,
            }
        })
    }

    /// The use ends. Returns whether the search for idle sessions must be started.
    pub(super) fn end_use(&mut self, ended: &EntryUse, now: Instant) -> bool {
        let usage = self.usage.get_mut(&ended.key);
        let Some(usage) = usage.filter(|usage| usage.entry == ended.entry) else {
            return false;
        };
        usage.active = usage.active.saturating_sub(1);
        usage.idle_since = now;
        usage.active == 0 && self.next_check.is_none()
    }

    /// Whether a request may use this session, and start an MCP session in it if it `begins` one.
    /// Existing sessions are never refused.
    ///
    /// # Errors
    /// Which limit is reached.
    pub(super) fn admit(&self, key: &SessionKey, begins: bool) -> Result<(), SessionLimit> {
        let fresh = !self.usage.contains_key(&UsageKey::Session(key.clone()));
        if !fresh && !begins {
            return Ok(());
        }
        let gone = self.displaced.len();
        if self.usage.len() - gone >= 2 * SESSIONS || self.mcp_sessions.len() - gone >= SESSIONS {
            return Err(SessionLimit::All);
        }
        let is_own = |key_of: &SessionKey| key_of.principal == key.principal;
        let sessions = self.usage.keys().filter(|usage_key| match usage_key {
            UsageKey::Session(key) => is_own(key),
            UsageKey::McpSession(_) => false,
        });
        let own_mcp_sessions = self
            .mcp_sessions
            .iter()
            .filter(|(id, session)| is_own(&session.key) && !self.displaced.contains(*id));
        if (fresh && sessions.count() >= SESSIONS_PER_PRINCIPAL)
            || (begins && own_mcp_sessions.count() >= SESSIONS_PER_PRINCIPAL)
        {
            return Err(SessionLimit::Principal);
        }
        Ok(())
    }

    /// Adds an MCP session, idle so far.
    pub(super) fn insert_mcp_session(&mut self, id: &str, session: McpSession, now: Instant) {
        self.mcp_sessions.insert(id.to_owned(), session);
        self.insert_unused(UsageKey::McpSession(id.to_owned()), now);
    }

    /// Adds an idle entry.
    pub(super) fn insert_unused(&mut self, key: UsageKey, now: Instant) {
        self.entry(key, now);
        self.changed = true;
    }

    /// The MCP session with this id.
    pub(super) fn mcp_session(&self, id: &str) -> Option<&McpSession> {
        let session = self.mcp_sessions.get(id);
        session.filter(|_| !self.displaced.contains(id))
    }

    /// The MCP sessions of a principal that can make way for a newer one, the longest idle first: no
    /// request has used them for `idle`, and their executions are those of no other client.
    pub(super) fn displaceable(
        &self,
        principal: &Principal,
        now: Instant,
        idle: Duration,
    ) -> Vec<(String, SessionKey)> {
        let candidate = |(id, session): (&String, &McpSession)| {
            let usage = self.usage.get(&UsageKey::McpSession(id.clone()))?;
            let is_idle = usage.active == 0 && usage.idle_since + idle <= now;
            let is_own = session.own && session.key.principal == *principal;
            (is_own && is_idle && !self.displaced.contains(id))
                .then(|| (usage.idle_since, (id.clone(), session.key.clone())))
        };
        let mut found: Vec<_> = self.mcp_sessions.iter().filter_map(candidate).collect();
        found.sort_by_key(|(idle_since, _)| *idle_since);
        found.into_iter().map(|(_, session)| session).collect()
    }

    /// As [`admit`](Self::admit) for a client that begins an MCP session, where this idle one makes way
    /// for it.
    ///
    /// # Errors
    /// Which limit is reached all the same: then nothing is changed.
    pub(super) fn admit_in_place_of(
        &mut self,
        id: &str,
        key: &SessionKey,
    ) -> Result<(), SessionLimit> {
        self.displaced.insert(id.to_owned());
        let admitted = self.admit(key, true);
        if admitted.is_err() {
            self.displaced.remove(id);
        }
        admitted
    }

    /// The end of one that made way is over.
    pub(super) fn forget_displaced(&mut self, id: &str) {
        self.displaced.remove(id);
    }

    /// An MCP session that is to end because it made way for a newer one.
    pub(super) fn next_displaced(&self) -> Option<String> {
        self.displaced.iter().next().cloned()
    }

    /// Changes the requests that hold until the session ends.
    pub(super) fn change_standing(&mut self, id: &str, change: impl FnOnce(&mut StandingRequests)) {
        if let Some(session) = self.mcp_sessions.get_mut(id) {
            change(&mut session.standing);
            self.changed = true;
        }
    }

    /// Removes an MCP session.
    pub(super) fn remove_mcp_session(&mut self, id: &str) -> Option<McpSession> {
        self.usage.remove(&UsageKey::McpSession(id.to_owned()));
        self.displaced.remove(id);
        self.changed = true;
        self.mcp_sessions.remove(id)
    }

    /// Removes a session, whose end begins.
    pub(super) fn begin_end(&mut self, key: &SessionKey) {
        self.usage.remove(&UsageKey::Session(key.clone()));
        self.ending.insert(key.clone());
        self.changed = true;
    }

    /// Everything of the session has ended.
    pub(super) fn finish_end(&mut self, key: &SessionKey) {
        self.changed |= self.ending.remove(key);
    }

    /// The sessions whose end has begun.
    pub(super) fn ending(&self) -> Vec<SessionKey> {
        self.ending.iter().cloned().collect()
    }

    /// Whether there is something new to store.
    pub(super) const fn is_changed(&self) -> bool {
        self.changed
    }

    /// Whether there is such an entry.
    pub(super) fn has(&self, key: &UsageKey) -> bool {
        self.usage.contains_key(key)
    }

    /// Whether an entry has been idle for `idle`.
    pub(super) fn is_due(&self, key: &UsageKey, now: Instant, idle: Duration) -> bool {
        let usage = self.usage.get(key);
        usage.is_some_and(|usage| usage.active == 0 && usage.idle_since + idle <= now)
    }

    /// Removes a session that goes on, though no client over HTTP uses it.
    pub(super) fn forget(&mut self, key: &SessionKey) {
        self.changed |= self.usage.remove(&UsageKey::Session(key.clone())).is_some();
    }

    /// The entries that have been idle for `idle`, and when to look again.
    pub(super) fn due(&mut self, now: Instant, idle: Duration) -> (Vec<UsageKey>, Option<Instant>) {
        let unused = |(key, usage): (&UsageKey, &SessionUsage)| {
            (usage.active == 0).then(|| (key.clone(), usage.idle_since + idle))
        };
        let (due, later): (Vec<_>, Vec<_>) = self
            .usage
            .iter()
            .filter_map(unused)
            .partition(|(_, at)| *at <= now);
        self.next_check = later.into_iter().map(|(_, at)| at).min();
        (
            due.into_iter().map(|(key, _)| key).collect(),
            self.next_check,
        )
    }

    /// The data to store for a later daemon, if it has changed since the last call.
    pub(super) fn take_changed(&mut self) -> Option<StoredSessions> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let session = |key: &UsageKey| match key {
            UsageKey::Session(key) => Some(key.clone()),
            UsageKey::McpSession(_) => None,
        };
        let mcp_sessions = self
            .mcp_sessions
            .iter()
            .map(|(id, session)| (id.clone(), session.clone()));
        Some(StoredSessions {
            sessions: self.usage.keys().filter_map(session).collect(),
            talks: mcp_sessions.collect(),
            ending: self.ending(),
        })
    }

    /// Restores what an earlier daemon stored.
    pub(super) fn restore(&mut self, stored: StoredSessions, now: Instant) {
        // One that was begun anew meanwhile is in use.
        let ending = stored.ending.into_iter();
        let ending = ending.filter(|key| !stored.sessions.contains(key));
        self.ending.extend(ending);
        for key in stored.sessions {
            self.insert_unused(UsageKey::Session(key), now);
        }
        for (id, session) in stored.talks {
            self.insert_mcp_session(&id, session, now);
        }
    }
}

/// The sessions as stored for the next daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredSessions {
    pub(super) sessions: Vec<SessionKey>,
    pub(super) talks: HashMap<String, McpSession>,
    /// Those whose end the next daemon has to complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ending: Vec<SessionKey>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(10);

    fn usage_key(name: &str) -> UsageKey {
        UsageKey::Session(key(name))
    }

    fn key(name: &str) -> SessionKey {
        SessionKey {
            principal: Principal::unix(0),
            session: SessionName(name.to_owned()),
        }
    }

    #[test]
    fn an_idle_session_is_due_after_its_timeout() {
        let (mut table, start) = (SessionTable::default(), Instant::now());
        let first = table.begin_use(usage_key("a"), start);
        let second = table.begin_use(usage_key("a"), start);
        assert!(!table.end_use(&first, start));
        assert_eq!(table.due(start + 2 * IDLE, IDLE), (vec![], None));
        assert!(table.end_use(&second, start + IDLE));
        let due = table.due(start + IDLE, IDLE);
        assert_eq!(due, (vec![], Some(start + 2 * IDLE)));
        // Used again meanwhile: the scheduled search notices that.
        let third = table.begin_use(usage_key("a"), start + IDLE);
        assert!(!table.is_due(&usage_key("a"), start + 9 * IDLE, IDLE));
        assert!(!table.end_use(&third, start + 3 * IDLE));
        assert!(!table.is_due(&usage_key("a"), start + 3 * IDLE, IDLE));
        assert!(table.is_due(&usage_key("a"), start + 4 * IDLE, IDLE));
        let due = table.due(start + 2 * IDLE, IDLE);
        assert_eq!(due, (vec![], Some(start + 4 * IDLE)));
        assert_eq!(
            table.due(start + 4 * IDLE, IDLE),
            (vec![usage_key("a")], None)
        );
    }

    fn key_of(user: u32, name: &str) -> SessionKey {
        SessionKey {
            principal: Principal::unix(user),
            ..key(name)
        }
    }

    #[test]
    fn mcp_sessions_have_room_up_to_the_limits_and_again_below_them() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        for n in 0..SESSIONS {
            let key = key_of(u32::try_from(n / SESSIONS_PER_PRINCIPAL).unwrap(), "x");
            assert_eq!(table.admit(&key, true), Ok(()), "{n}");
            table.insert_mcp_session(&n.to_string(), mcp_session(key.clone(), true), now);
            let has_all = (n + 1) % SESSIONS_PER_PRINCIPAL == 0;
            let expected = if has_all && n + 1 < SESSIONS {
                Err(SessionLimit::Principal)
            } else if has_all {
                Err(SessionLimit::All)
            } else {
                Ok(())
            };
            assert_eq!(table.admit(&key, true), expected, "{n}");
        }
        assert_eq!(table.admit(&key_of(9, "y"), true), Err(SessionLimit::All));
        assert!(table.remove_mcp_session("0").is_some());
        assert_eq!(table.admit(&key_of(0, "y"), true), Ok(()));
        assert_eq!(
            table.admit(&key_of(1, "y"), true),
            Err(SessionLimit::Principal)
        );
    }

    #[test]
    fn the_longest_idle_mcp_session_makes_way() {
        let (mut table, start) = (SessionTable::default(), Instant::now());
        let principal = key("x").principal;
        for n in 0..SESSIONS_PER_PRINCIPAL {
            let at = start + Duration::from_millis(n as u64);
            table.insert_mcp_session(&n.to_string(), mcp_session(key("x"), n != 1), at);
        }
        let _in_use = table.begin_use(UsageKey::McpSession("0".to_owned()), start);
        assert_eq!(table.admit(&key("x"), true), Err(SessionLimit::Principal));
        let ids = |found: Vec<(String, SessionKey)>| -> Vec<String> {
            found.into_iter().map(|(id, _)| id).collect()
        };
        // The first is in use, the second has executions of other clients.
        let now = start + IDLE + Duration::from_millis(3);
        assert_eq!(ids(table.displaceable(&principal, now, IDLE)), ["2", "3"]);
        let other = Principal::unix(7);
        assert_eq!(ids(table.displaceable(&other, now, IDLE)), [""; 0]);
        assert_eq!(table.admit_in_place_of("2", &key("x")), Ok(()));
        assert_eq!(table.mcp_session("2"), None);
        assert_eq!(ids(table.displaceable(&principal, now, IDLE)), ["3"]);
        assert_eq!(table.next_displaced().as_deref(), Some("2"));
        table.insert_mcp_session("new", mcp_session(key("x"), true), now);
        assert_eq!(table.admit(&key("x"), true), Err(SessionLimit::Principal));
        assert!(table.remove_mcp_session("2").is_some());
        assert_eq!(table.admit(&key("x"), true), Err(SessionLimit::Principal));
        assert_eq!(table.next_displaced(), None);
        // A request that came just before has it stay.
        assert_eq!(table.admit_in_place_of("3", &key("x")), Ok(()));
        table.begin_use(UsageKey::McpSession("3".to_owned()), now);
        assert!(table.mcp_session("3").is_some());
        assert_eq!(table.next_displaced(), None);
    }

    #[test]
    fn none_makes_way_where_that_would_not_help() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        for n in 0..SESSIONS_PER_PRINCIPAL {
            table.begin_use(usage_key(&n.to_string()), now);
        }
        table.insert_mcp_session("one", mcp_session(key("x"), true), now);
        assert_eq!(
            table.admit_in_place_of("one", &key("new")),
            Err(SessionLimit::Principal)
        );
        assert!(table.mcp_session("one").is_some());
    }

    fn mcp_session(key: SessionKey, own: bool) -> McpSession {
        McpSession {
            key,
            access: ProjectAccess::default(),
            own,
            initialize: Value::Null,
            standing: StandingRequests::default(),
        }
    }

    #[test]
    fn a_principal_with_all_its_sessions_keeps_them_and_locks_no_other_out() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        let name = |n: usize| key_of(1, &n.to_string());
        for n in 0..SESSIONS_PER_PRINCIPAL {
            assert_eq!(table.admit(&name(n), false), Ok(()));
            table.begin_use(UsageKey::Session(name(n)), now);
        }
        assert_eq!(
            table.admit(&name(SESSIONS_PER_PRINCIPAL), false),
            Err(SessionLimit::Principal)
        );
        assert_eq!(table.admit(&name(0), false), Ok(()), "it is there");
        assert_eq!(table.admit(&key_of(2, "x"), true), Ok(()));
        table.begin_end(&name(0));
        assert_eq!(table.admit(&name(SESSIONS_PER_PRINCIPAL), false), Ok(()));
    }

    #[test]
    fn what_ended_is_not_due_and_leaving_it_is_nothing() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        let before = table.begin_use(usage_key("a"), now);
        table.begin_end(&key("a"));
        assert!(!table.end_use(&before, now));
        assert_eq!(table.due(now + IDLE, IDLE), (vec![], None));
        // Nor is it one of the session that begins under its name.
        let other = table.begin_use(usage_key("a"), now);
        assert!(!table.end_use(&before, now));
        assert_eq!(table.due(now + IDLE, IDLE), (vec![], None));
        assert!(table.end_use(&other, now));
    }

    #[test]
    fn an_end_that_was_not_completed_is_known_to_the_next() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        table.begin_use(usage_key("a"), now);
        table.begin_end(&key("a"));
        let kept = table.take_changed().unwrap();
        let mut next = SessionTable::default();
        next.restore(kept, now);
        assert_eq!(next.ending(), [key("a")]);
        assert_eq!(next.take_changed(), None);
        next.finish_end(&key("a"));
        assert_eq!(next.take_changed(), Some(StoredSessions::default()));
        table.begin_use(usage_key("a"), now);
        let mut next = SessionTable::default();
        next.restore(table.take_changed().unwrap(), now);
        assert_eq!(next.ending(), [], "it was begun anew");
    }

    #[test]
    fn what_is_kept_is_taken_up() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        assert_eq!(table.take_changed(), None);
        table.begin_use(usage_key("a"), now);
        let talk = McpSession {
            key: key("mcp-1"),
            access: ProjectAccess::read_only(),
            own: true,
            initialize: Value::Null,
            standing: StandingRequests::default(),
        };
        table.insert_mcp_session("1", talk.clone(), now);
        let kept = table.take_changed().unwrap();
        assert_eq!(table.take_changed(), None);
        let mut next = SessionTable::default();
        next.restore(kept, now);
        assert_eq!(next.mcp_session("1"), Some(&talk));
        let (due, armed) = next.due(now + IDLE, IDLE);
        assert_eq!((due.len(), armed), (2, None));
        assert_eq!(next.remove_mcp_session("1"), Some(talk));
        assert_eq!(next.mcp_session("1"), None);
    }
}
