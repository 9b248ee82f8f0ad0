//! Every session's news, and who waits for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_engine::{Engine, Info};
use ostler_model::id::IdRef;
use ostler_model::{Caller, ErrorCode, ExecutionId, Owner, Principal, Scope, SessionName};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed;
use super::item::{Item, Standing};
use super::session::Ears;
use crate::error::Failure;

/// Sessions whose news are kept; beyond, the one that was quiet longest is forgotten.
const SESSIONS: usize = 1_024;
/// Patterns one session may watch for at a time.
pub(super) const WATCHES_PER_SESSION: usize = 16;
/// Resources the clients of one session may be subscribed to at a time.
const SUBSCRIPTIONS_PER_SESSION: usize = 256;

/// Ends, crashes and matched patterns, per session, until they are told.
#[derive(Debug)]
pub(in crate::mcp) struct News {
    pub(super) board: Arc<Board>,
    pub(super) engine: Engine,
    /// The feed and the watches.
    pub(super) tasks: TaskTracker,
    pub(super) closing: CancellationToken,
}

/// The shared part.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    realms: HashMap<Principal, Realm>,
    /// Counts uses, to tell which session was quiet longest.
    clock: u64,
}

/// What belongs to one principal.
#[derive(Debug, Default)]
struct Realm {
    sessions: HashMap<Option<SessionName>, Session>,
    /// Changes with every start and end of the principal's.
    list: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Session {
    ears: Ears,
    project: Option<String>,
    /// Whether a client was here, and what ended unseen was looked for.
    entered: bool,
    watches: usize,
    subscriptions: usize,
    used: u64,
    /// Changes with every start and end of the session's.
    list: watch::Sender<u64>,
    /// Changes when there is something to push.
    news: watch::Sender<u64>,
}

impl News {
    /// Hears the engine from now on, on the runtime it is called in, until it is dropped.
    pub(in crate::mcp) fn new(engine: Engine) -> Self {
        let news = Self {
            board: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            engine,
        };
        let heard = feed::run(
            Arc::clone(&news.board),
            news.engine.clone(),
            news.engine.subscribe(),
        );
        let closing = news.closing.clone();
        news.tasks
            .spawn(async move { closing.run_until_cancelled(heard).await });
        news
    }

    /// A client of this session is here. The first time, what ended unseen becomes news: what
    /// an earlier daemon left running and has ended since. An end that an earlier daemon
    /// recorded itself is not repeated, told or not.
    pub(in crate::mcp) async fn enter(&self, caller: &Caller) {
        let first = self.board.lock().enter(caller);
        if first {
            feed::catch_up(&self.board, &self.engine, caller, |info| info.recovered).await;
        }
    }

    /// A tool answer shows `info` to this caller: its end, or how the service it is stands, is
    /// no news any more. Nothing while anything else runs.
    pub(in crate::mcp) fn told(&self, caller: &Caller, info: &Info) {
        let standing = Standing::of(info);
        if standing.is_none() && !info.state.is_finished() {
            return;
        }
        if let Some(session) = self.board.lock().session(&caller.owner) {
            match standing {
                Some(standing) => session.ears.told_standing(info.id, standing),
                None => session.ears.told_end(info.id),
            }
        }
    }

    /// The id of this execution was given out just now. If it has ended since the answer that
    /// did it was made, and nobody told that end, it is news.
    pub(in crate::mcp) async fn given_out(&self, caller: &Caller, id: ExecutionId) {
        match self.engine.info(caller, &id.to_string()) {
            Ok(info) if info.state.is_finished() && self.board.wants(&info.owner, id) => {
                feed::ended(&self.board, &self.engine, &info).await;
            }
            Ok(info) => {
                if let Some(item) = Item::service(&info) {
                    self.board.add(&info.owner, item);
                }
            }
            Err(_) => {}
        }
    }

    /// What this caller has not been told yet, as one line; it counts as told now.
    pub(in crate::mcp) fn line(&self, caller: &Caller) -> Option<String> {
        self.board.lock().session(&caller.owner)?.ears.line()
    }

    /// A call with these arguments is under way: whatever it says of the ends of executions
    /// they name, it says by itself, so nothing is pushed for them before the guard drops.
    #[must_use]
    pub(in crate::mcp) fn attend(
        &self,
        caller: &Caller,
        arguments: &Map<String, Value>,
    ) -> Attending {
        self.attending(caller, arguments.values().flat_map(ids).collect())
    }

    /// As [`News::attend`], for a call that names an execution in another way.
    #[must_use]
    pub(in crate::mcp) fn attend_to(&self, caller: &Caller, id: ExecutionId) -> Attending {
        self.attending(caller, vec![id.short_bits()])
    }

    fn attending(&self, caller: &Caller, bits: Vec<u64>) -> Attending {
        if !bits.is_empty()
            && let Some(session) = self.board.lock().session(&caller.owner)
        {
            session.ears.attend(&bits);
        }
        Attending {
            board: Arc::clone(&self.board),
            owner: (!bits.is_empty()).then(|| caller.owner.clone()),
            bits,
        }
    }

    /// Everything kept for this caller, newest first; it counts as told now.
    pub(in crate::mcp) fn read(&self, caller: &Caller) -> Vec<Item> {
        let mut board = self.board.lock();
        let session = board.session(&caller.owner);
        session.map_or_else(Vec::new, |session| session.ears.read())
    }

    /// What is to be pushed to this caller and has a higher number than `after`.
    pub(in crate::mcp) fn pushed(&self, caller: &Caller, after: u64) -> Vec<(u64, Item)> {
        let mut board = self.board.lock();
        let session = board.session(&caller.owner);
        session.map_or_else(Vec::new, |session| session.ears.pushed(after))
    }

    /// Changes when there is something to push to this caller.
    pub(in crate::mcp) fn changes(&self, caller: &Caller) -> Signal {
        let mut board = self.board.lock();
        board.touch(caller);
        Signal::new(board.session(&caller.owner).map(|it| it.news.subscribe()))
    }

    /// Changes with every start and end of what this caller sees.
    pub(in crate::mcp) fn list_changes(&self, caller: &Caller) -> Signal {
        let mut board = self.board.lock();
        board.touch(caller);
        Signal::new(match caller.scope {
            Scope::Session => board.session(&caller.owner).map(|it| it.list.subscribe()),
            Scope::Principal => board.realm(&caller.owner).map(|it| it.list.subscribe()),
        })
    }

    /// Room for so many subscriptions of this caller's session.
    ///
    /// # Errors
    /// When it has too many already.
    pub(in crate::mcp) fn slots(&self, caller: &Caller, count: usize) -> Result<Slots, Failure> {
        let mut board = self.board.lock();
        board.touch(caller);
        if let Some(session) = board.session(&caller.owner) {
            if session.subscriptions + count > SUBSCRIPTIONS_PER_SESSION {
                let message = format!(
                    "{} subscriptions of this session are open; allowed: \
                     {SUBSCRIPTIONS_PER_SESSION}",
                    session.subscriptions
                );
                let failure = Failure::new(ErrorCode::QuotaExceeded, message);
                return Err(failure.with_hint("end some; proc:// stands for every execution"));
            }
            session.subscriptions += count;
        }
        Ok(Slots {
            board: Arc::clone(&self.board),
            owner: caller.owner.clone(),
            count,
        })
    }

    /// The session is over: a later one of the same name has no news of it.
    pub(in crate::mcp) fn forget(&self, caller: &Caller) {
        let mut board = self.board.lock();
        if let Some(realm) = board.realms.get_mut(&caller.owner.principal) {
            realm.sessions.remove(&caller.owner.session);
        }
    }

    /// Ends every task of it.
    pub(in crate::mcp) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl Board {
    fn lock(&self) -> Locked<'_> {
        Locked(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a client of this owner's session was ever here.
    pub(super) fn knows(&self, owner: &Owner) -> bool {
        self.lock().session(owner).is_some()
    }

    /// Whether the end of this execution would be news to its session.
    pub(super) fn wants(&self, owner: &Owner, id: ExecutionId) -> bool {
        let mut board = self.lock();
        let session = board.session(owner);
        session.is_some_and(|session| session.ears.is_unheard(id))
    }

    /// Takes one piece in for a session that is known.
    pub(super) fn add(&self, owner: &Owner, item: Item) {
        if let Some(session) = self.lock().session(owner)
            && session.ears.add(item)
        {
            bump(&session.news);
        }
    }

    /// An execution of this owner started or ended.
    pub(super) fn list_changed(&self, owner: &Owner) {
        let mut board = self.lock();
        let Some(realm) = board.realms.get_mut(&owner.principal) else {
            return;
        };
        bump(&realm.list);
        if owner.session.is_some() {
            if let Some(session) = realm.sessions.get(&owner.session) {
                bump(&session.list);
            }
        } else if owner.project.is_some() {
            let theirs = realm.sessions.values();
            theirs
                .filter(|session| session.project == owner.project)
                .for_each(|session| bump(&session.list));
        }
    }

    /// Everybody shall look again: it is not known what was missed.
    pub(super) fn everything_changed(&self) -> Vec<Owner> {
        let board = self.lock();
        let mut owners = Vec::new();
        for (principal, realm) in &board.realms {
            bump(&realm.list);
            for (name, session) in &realm.sessions {
                bump(&session.list);
                owners.push(Owner {
                    principal: principal.clone(),
                    project: session.project.clone(),
                    session: name.clone(),
                    task: None,
                    channel: ostler_model::Channel::Local,
                });
            }
        }
        owners
    }

    /// Takes a place for a watch.
    pub(super) fn begin_watch(&self, caller: &Caller) -> Result<(), Failure> {
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
            let failure = Failure::new(ErrorCode::QuotaExceeded, message);
            return Err(failure.with_hint("a watch ends with its match or its execution"));
        }
        session.watches += 1;
        Ok(())
    }

    pub(super) fn end_watch(&self, owner: &Owner) {
        if let Some(session) = self.lock().session(owner) {
            session.watches = session.watches.saturating_sub(1);
        }
    }
}

struct Locked<'a>(MutexGuard<'a, Inner>);

impl std::ops::Deref for Locked<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

impl Inner {
    fn realm(&mut self, owner: &Owner) -> Option<&mut Realm> {
        self.realms.get_mut(&owner.principal)
    }

    fn session(&mut self, owner: &Owner) -> Option<&mut Session> {
        self.realm(owner)?.sessions.get_mut(&owner.session)
    }

    /// A client of the session is here; true the first time.
    fn enter(&mut self, caller: &Caller) -> bool {
        self.touch(caller);
        let session = self.session(&caller.owner);
        session.is_some_and(|session| !std::mem::replace(&mut session.entered, true))
    }

    /// Notes that the session is in use.
    fn touch(&mut self, caller: &Caller) {
        self.clock += 1;
        let now = self.clock;
        if let Some(session) = self.session(&caller.owner) {
            session.used = now;
            return;
        }
        self.make_room();
        let realm = self.realms.entry(caller.owner.principal.clone());
        let session = Session {
            project: caller.owner.project.clone(),
            used: now,
            ..Session::default()
        };
        let sessions = &mut realm.or_default().sessions;
        sessions.insert(caller.owner.session.clone(), session);
    }

    /// Forgets the session that was quiet longest, where there are too many.
    fn make_room(&mut self) {
        let known: usize = self.realms.values().map(|it| it.sessions.len()).sum();
        if known < SESSIONS {
            return;
        }
        let all = self.realms.iter().flat_map(|(principal, realm)| {
            let sessions = realm.sessions.iter();
            sessions.map(move |(name, session)| (principal, name, session))
        });
        let idle = all.filter(|(_, _, session)| session.is_idle());
        let oldest = idle.min_by_key(|(_, _, session)| session.used);
        let oldest = oldest.map(|(principal, name, _)| (principal.clone(), name.clone()));
        if let Some((principal, name)) = oldest
            && let Some(realm) = self.realms.get_mut(&principal)
        {
            realm.sessions.remove(&name);
        }
    }
}

impl Session {
    fn is_idle(&self) -> bool {
        let heard = self.list.receiver_count() + self.news.receiver_count();
        heard == 0 && self.watches == 0 && self.subscriptions == 0
    }
}

fn bump(sender: &watch::Sender<u64>) {
    sender.send_modify(|version| *version += 1);
}

/// The ids in an argument, by short bits: those of several come in a list.
fn ids(argument: &Value) -> Vec<u64> {
    let id = |value: &Value| match value.as_str()?.parse().ok()? {
        IdRef::Full(id) => Some(id.short_bits()),
        IdRef::Short(bits) => Some(bits),
    };
    match argument.as_array() {
        Some(items) => items.iter().filter_map(id).collect(),
        None => id(argument).into_iter().collect(),
    }
}

/// While it lives, a call about some executions is under way.
#[derive(Debug)]
pub(in crate::mcp) struct Attending {
    board: Arc<Board>,
    /// None when it is about nothing.
    owner: Option<Owner>,
    bits: Vec<u64>,
}

impl Drop for Attending {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner
            && let Some(session) = self.board.lock().session(owner)
            && session.ears.release(&self.bits)
        {
            bump(&session.news);
        }
    }
}

/// Places of subscriptions, given back when dropped.
#[derive(Debug)]
pub(in crate::mcp) struct Slots {
    board: Arc<Board>,
    owner: Owner,
    count: usize,
}

impl Drop for Slots {
    fn drop(&mut self) {
        if let Some(session) = self.board.lock().session(&self.owner) {
            session.subscriptions = session.subscriptions.saturating_sub(self.count);
        }
    }
}

/// Something that changes; what is between two looks is one change.
#[derive(Debug)]
pub(in crate::mcp) struct Signal {
    changes: Option<watch::Receiver<u64>>,
    seen: u64,
}

impl Signal {
    fn new(changes: Option<watch::Receiver<u64>>) -> Self {
        let seen = changes.as_ref().map_or(0, |changes| *changes.borrow());
        Self { changes, seen }
    }

    /// What happened up to now counts as seen.
    pub(in crate::mcp) fn look(&mut self) {
        if let Some(changes) = &self.changes {
            self.seen = *changes.borrow();
        }
    }

    /// Until it changes; false when it never will again. Cancel safe.
    pub(in crate::mcp) async fn changed(&mut self) -> bool {
        let seen = self.seen;
        match &mut self.changes {
            Some(changes) => changes.wait_for(|version| *version != seen).await.is_ok(),
            None => false,
        }
    }
}
