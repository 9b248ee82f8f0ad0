//! Which sessions are in use, and since when they are not. Pure: time comes in.

use std::collections::HashMap;
use std::time::Duration;

use ostler_model::SessionName;
use ostler_model::owner::Principal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

/// The most sessions of each kind that are kept at once.
pub(super) const SESSIONS: usize = 1_024;
/// The most of each kind that one principal has, so that others find room.
pub(super) const SESSIONS_OF_ONE: usize = SESSIONS / 4;

/// One session of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) principal: Principal,
    pub(super) session: SessionName,
}

/// An MCP session of the handshake era.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Talk {
    /// Whose it is, and the session its requests are in.
    pub(super) key: Key,
    /// Whether that session is its own, and ends with it.
    pub(super) own: bool,
    /// What its client said in `initialize`.
    pub(super) initialize: Value,
}

/// What a request uses while it is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A named or shared session.
    Session(Key),
    /// An MCP session, by its id.
    Talk(String),
}

/// Why no further session is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// There are as many as there may be.
    All,
    /// The principal has as many as one may have.
    Principal,
}

/// How many use a place, and since when nobody does.
#[derive(Debug, Clone, Copy)]
struct Use {
    under_way: usize,
    since: Instant,
}

/// Every session.
#[derive(Debug, Default)]
pub(super) struct Table {
    uses: HashMap<Place, Use>,
    talks: HashMap<String, Talk>,
    /// When somebody will look for idle ones; none while there is nothing to look for.
    armed: Option<Instant>,
    changed: bool,
}

impl Table {
    /// A request begins to use a place.
    pub(super) fn enter(&mut self, place: Place, now: Instant) {
        let fresh = Use {
            under_way: 0,
            since: now,
        };
        let changed = &mut self.changed;
        let entry = self.uses.entry(place).or_insert_with(|| {
            *changed = true;
            fresh
        });
        entry.under_way += 1;
    }

    /// It ends. Whether somebody must begin to look for idle ones.
    pub(super) fn leave(&mut self, place: &Place, now: Instant) -> bool {
        let Some(used) = self.uses.get_mut(place) else {
            return false;
        };
        used.under_way = used.under_way.saturating_sub(1);
        used.since = now;
        used.under_way == 0 && self.armed.is_none()
    }

    /// Whether a request may use this session, and begin an MCP session in it if it `begins`
    /// one. What is there already is not refused.
    ///
    /// # Errors
    /// Who has too many.
    pub(super) fn admit(&self, key: &Key, begins: bool) -> Result<(), Full> {
        let fresh = !self.uses.contains_key(&Place::Session(key.clone()));
        if !fresh && !begins {
            return Ok(());
        }
        if self.uses.len() >= 2 * SESSIONS || self.talks.len() >= SESSIONS {
            return Err(Full::All);
        }
        let own = |key_of: &Key| key_of.principal == key.principal;
        let sessions = self.uses.keys().filter(|place| match place {
            Place::Session(key) => own(key),
            Place::Talk(_) => false,
        });
        let talks = self.talks.values().filter(|talk| own(&talk.key));
        if (fresh && sessions.count() >= SESSIONS_OF_ONE)
            || (begins && talks.count() >= SESSIONS_OF_ONE)
        {
            return Err(Full::Principal);
        }
        Ok(())
    }

    /// An MCP session begins, unused so far.
    pub(super) fn begin(&mut self, id: &str, talk: Talk, now: Instant) {
        self.talks.insert(id.to_owned(), talk);
        self.rest(Place::Talk(id.to_owned()), now);
    }

    /// A place that nobody uses yet.
    pub(super) fn rest(&mut self, place: Place, now: Instant) {
        let unused = Use {
            under_way: 0,
            since: now,
        };
        self.uses.entry(place).or_insert(unused);
        self.changed = true;
    }

    /// The MCP session with this id.
    pub(super) fn talk(&self, id: &str) -> Option<&Talk> {
        self.talks.get(id)
    }

    /// An MCP session is over.
    pub(super) fn end_talk(&mut self, id: &str) -> Option<Talk> {
        self.uses.remove(&Place::Talk(id.to_owned()));
        self.changed = true;
        self.talks.remove(id)
    }

    /// A session is over.
    pub(super) fn end(&mut self, key: &Key) {
        self.uses.remove(&Place::Session(key.clone()));
        self.changed = true;
    }

    /// What nobody has used for `idle`, and when to look again.
    pub(super) fn due(&mut self, now: Instant, idle: Duration) -> (Vec<Place>, Option<Instant>) {
        let unused = |(place, used): (&Place, &Use)| {
            (used.under_way == 0).then(|| (place.clone(), used.since + idle))
        };
        let (due, later): (Vec<_>, Vec<_>) = self
            .uses
            .iter()
            .filter_map(unused)
            .partition(|(_, at)| *at <= now);
        self.armed = later.into_iter().map(|(_, at)| at).min();
        (
            due.into_iter().map(|(place, _)| place).collect(),
            self.armed,
        )
    }

    /// What a later daemon must know, if that has changed since the last time.
    pub(super) fn take_changes(&mut self) -> Option<Kept> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let session = |place: &Place| match place {
            Place::Session(key) => Some(key.clone()),
            Place::Talk(_) => None,
        };
        let talks = self
            .talks
            .iter()
            .map(|(id, talk)| (id.clone(), talk.clone()));
        Some(Kept {
            sessions: self.uses.keys().filter_map(session).collect(),
            talks: talks.collect(),
        })
    }

    /// Takes up what an earlier daemon kept.
    pub(super) fn take_up(&mut self, kept: Kept, now: Instant) {
        for key in kept.sessions {
            self.rest(Place::Session(key), now);
        }
        for (id, talk) in kept.talks {
            self.begin(&id, talk, now);
        }
    }
}

/// What outlives a daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) sessions: Vec<Key>,
    pub(super) talks: HashMap<String, Talk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(10);

    fn place(name: &str) -> Place {
        Place::Session(key(name))
    }

    fn key(name: &str) -> Key {
        Key {
            principal: Principal::unix(0),
            session: SessionName(name.to_owned()),
        }
    }

    #[test]
    fn a_place_is_due_when_nobody_used_it_for_long_enough() {
        let (mut table, start) = (Table::default(), Instant::now());
        table.enter(place("a"), start);
        table.enter(place("a"), start);
        assert!(!table.leave(&place("a"), start));
        assert_eq!(table.due(start + 2 * IDLE, IDLE), (vec![], None));
        assert!(table.leave(&place("a"), start + IDLE));
        let due = table.due(start + IDLE, IDLE);
        assert_eq!(due, (vec![], Some(start + 2 * IDLE)));
        // Used again meanwhile: the look that is armed already finds that out.
        table.enter(place("a"), start + IDLE);
        assert!(!table.leave(&place("a"), start + 3 * IDLE));
        let due = table.due(start + 2 * IDLE, IDLE);
        assert_eq!(due, (vec![], Some(start + 4 * IDLE)));
        assert_eq!(table.due(start + 4 * IDLE, IDLE), (vec![place("a")], None));
    }

    fn key_of(user: u32, name: &str) -> Key {
        Key {
            principal: Principal::unix(user),
            ..key(name)
        }
    }

    #[test]
    fn mcp_sessions_have_room_up_to_the_limits_and_again_below_them() {
        let (mut table, now) = (Table::default(), Instant::now());
        for n in 0..SESSIONS {
            let key = key_of(u32::try_from(n / SESSIONS_OF_ONE).unwrap(), "x");
            assert_eq!(table.admit(&key, true), Ok(()), "{n}");
            let talk = Talk {
                key: key.clone(),
                own: true,
                initialize: Value::Null,
            };
            table.begin(&n.to_string(), talk, now);
            let has_all = (n + 1) % SESSIONS_OF_ONE == 0;
            let expected = if has_all && n + 1 < SESSIONS {
                Err(Full::Principal)
            } else if has_all {
                Err(Full::All)
            } else {
                Ok(())
            };
            assert_eq!(table.admit(&key, true), expected, "{n}");
        }
        assert_eq!(table.admit(&key_of(9, "y"), true), Err(Full::All));
        assert!(table.end_talk("0").is_some());
        assert_eq!(table.admit(&key_of(0, "y"), true), Ok(()));
        assert_eq!(table.admit(&key_of(1, "y"), true), Err(Full::Principal));
    }

    #[test]
    fn a_principal_with_all_its_sessions_keeps_them_and_locks_out_nobody() {
        let (mut table, now) = (Table::default(), Instant::now());
        let name = |n: usize| key_of(1, &n.to_string());
        for n in 0..SESSIONS_OF_ONE {
            assert_eq!(table.admit(&name(n), false), Ok(()));
            table.enter(Place::Session(name(n)), now);
        }
        assert_eq!(
            table.admit(&name(SESSIONS_OF_ONE), false),
            Err(Full::Principal)
        );
        assert_eq!(table.admit(&name(0), false), Ok(()), "it is there");
        assert_eq!(table.admit(&key_of(2, "x"), true), Ok(()));
        table.end(&name(0));
        assert_eq!(table.admit(&name(SESSIONS_OF_ONE), false), Ok(()));
    }

    #[test]
    fn what_ended_is_not_due_and_leaving_it_is_nothing() {
        let (mut table, now) = (Table::default(), Instant::now());
        table.enter(place("a"), now);
        table.end(&key("a"));
        assert!(!table.leave(&place("a"), now));
        assert_eq!(table.due(now + IDLE, IDLE), (vec![], None));
    }

    #[test]
    fn what_is_kept_is_taken_up() {
        let (mut table, now) = (Table::default(), Instant::now());
        assert_eq!(table.take_changes(), None);
        table.enter(place("a"), now);
        let talk = Talk {
            key: key("mcp-1"),
            own: true,
            initialize: Value::Null,
        };
        table.begin("1", talk.clone(), now);
        let kept = table.take_changes().unwrap();
        assert_eq!(table.take_changes(), None);
        let mut next = Table::default();
        next.take_up(kept, now);
        assert_eq!(next.talk("1"), Some(&talk));
        let (due, armed) = next.due(now + IDLE, IDLE);
        assert_eq!((due.len(), armed), (2, None));
        assert_eq!(next.end_talk("1"), Some(talk));
        assert_eq!(next.talk("1"), None);
    }
}
