//! Sessions over HTTP and their ends: by `DELETE`, or when idle for long enough. A request under
//! way and an open stream count as use.
//!
//! They are also stored in a small file, so that the next daemon continues after a crash or an
//! upgrade: it ends idle ones, and knows the MCP sessions of the handshake era again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ostler_engine::ListFilter;
use ostler_interface::http::{HttpProblem, SessionUseGuard, SessionUses};
use ostler_journal::atomic_file::{self, UMASK_MODE};
use ostler_model::owner::Owner;
use ostler_model::status::ProcessStatus;
use ostler_model::{Caller, ErrorCode, Principal, Scope, SessionName};
use ostler_sys::regular_file;
use parking_lot::Mutex;
use rmcp::model::CallToolResult;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::session_prefix::{MCP_PREFIX, STDIO_PREFIX};
use super::session_table::{
    EntryUse, McpSession, SESSIONS, SESSIONS_PER_PRINCIPAL, SessionKey, SessionLimit, SessionTable,
    StoredSessions, UsageKey,
};
use crate::client::ConnectedClient;
use crate::interrupted::{InterruptCause, InterruptedCall};
use crate::session_hooks::{SessionHooks, StandingRequests};
use crate::state::McpState;
use crate::streamable_http::StreamableHttp;

/// The part of the time after which an idle session ends that lets it make way for a new one, where
/// there is no room otherwise: a minute of half an hour.
const DISPLACEABLE_PART: u32 = 30;
/// The most sessions that are considered for that at a time.
const DISPLACEABLE_TRIES: usize = 16;

/// The sessions of HTTP clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HttpSessions(Arc<SessionsInner>);

#[derive(Debug)]
struct SessionsInner {
    mcp_state: McpState,
    idle: Duration,
    file: Option<PathBuf>,
    shutdown: CancellationToken,
    table: Mutex<SessionTable>,
    /// Wakes the task when there is something new to check or to store.
    changed: Notify,
}

/// Marks an `initialize` that names no session and so may start its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnonymousInitialize;

/// A session in use, until it is dropped.
#[derive(Debug)]
pub(super) struct SessionUse {
    sessions: HttpSessions,
    uses: Vec<EntryUse>,
}

impl HttpSessions {
    /// Restores the sessions that an earlier daemon stored in `file`.
    pub(super) fn new(
        mcp_state: McpState,
        idle: Duration,
        file: Option<PathBuf>,
        shutdown: CancellationToken,
    ) -> Self {
        let mut table = SessionTable::default();
        if let Some(stored) = file.as_deref().and_then(load) {
            table.restore(stored, Instant::now());
        }
        Self(Arc::new(SessionsInner {
            mcp_state,
            idle,
            file,
            shutdown,
            table: Mutex::new(table),
            changed: Notify::new(),
        }))
    }

    /// Ends idle sessions and updates the file, until the shutdown.
    pub(super) async fn run(self, mcp: StreamableHttp) {
        let shutdown = self.0.shutdown.clone();
        let ending = self.0.table.lock().ending();
        for key in ending {
            tracing::info!(session = %key.session, "an earlier daemon had begun to end this session");
            self.end_idle(&key).await;
        }
        loop {
            while let Some(id) = self.next_displaced() {
                mcp.close(&id).await;
                // Also one whose end a shutdown left to the next daemon.
                self.0.table.lock().forget_displaced(&id);
            }
            let (due, next) = self.0.table.lock().due(Instant::now(), self.0.idle);
            for place in due {
                // It may have been used again while another one was ended.
                let now = Instant::now();
                if !self.0.table.lock().is_due(&place, now, self.0.idle) {
                    continue;
                }
                match place {
                    UsageKey::Session(key) if self.is_local(&key) => {
                        tracing::info!(session = %key.session, "a session without requests over HTTP goes on: local clients started commands in it");
                        self.0.table.lock().forget(&key);
                    }
                    UsageKey::Session(key) => {
                        tracing::info!(session = %key.session, "a session over HTTP ended for idleness");
                        self.end_idle(&key).await;
                    }
                    UsageKey::McpSession(id) => {
                        tracing::info!(id, "an MCP session over HTTP ended for idleness");
                        mcp.close(&id).await;
                    }
                }
            }
            self.save();
            let next_check = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.0.changed.notified() => {}
                () = next_check => {}
            }
        }
        self.save();
    }

    /// Uses these entries until the response is sent.
    pub(super) fn begin_use(&self, keys: Vec<UsageKey>) -> SessionUse {
        let now = Instant::now();
        let mut table = self.0.table.lock();
        let started = keys.into_iter().map(|key| table.begin_use(key, now));
        let uses = started.collect();
        if table.is_changed() {
            self.0.changed.notify_one();
        }
        drop(table);
        let sessions = self.clone();
        SessionUse { sessions, uses }
    }

    /// As [`SessionTable::admit`]. Where there is no room for one that `begins`, an idle MCP session of
    /// the same principal makes way, if there is one in which nothing runs.
    ///
    /// # Errors
    /// As there, for the client.
    pub(super) fn admit(&self, key: &SessionKey, begins: bool) -> Result<(), HttpProblem> {
        let Err(full) = self.0.table.lock().admit(key, begins) else {
            return Ok(());
        };
        if begins && self.displace_idle(key) {
            return Ok(());
        }
        let message = match full {
            SessionLimit::All => format!("there are {SESSIONS} sessions over HTTP"),
            SessionLimit::Principal => {
                format!(
                    "this token has {SESSIONS_PER_PRINCIPAL} sessions over HTTP, all it may have"
                )
            }
        };
        let hint = "end some with DELETE; idle ones end by themselves";
        Err(HttpProblem::new(ErrorCode::QuotaExceeded, message, None).with_hint(hint))
    }

    /// As [`SessionTable::next_displaced`].
    fn next_displaced(&self) -> Option<String> {
        self.0.table.lock().next_displaced()
    }

    /// Makes room for an MCP session that begins; returns whether there is some.
    fn displace_idle(&self, key: &SessionKey) -> bool {
        let (now, idle) = (Instant::now(), self.0.idle / DISPLACEABLE_PART);
        let candidates = self.0.table.lock().displaceable(&key.principal, now, idle);
        for (id, candidate) in candidates.into_iter().take(DISPLACEABLE_TRIES) {
            if self.has_running(&candidate) {
                continue;
            }
            let usage = UsageKey::McpSession(id.clone());
            let mut table = self.0.table.lock();
            // It may have been used meanwhile.
            if table.is_due(&usage, now, idle) && table.admit_in_place_of(&id, key).is_ok() {
                drop(table);
                tracing::info!(id, "an idle MCP session over HTTP makes way for a new one");
                self.0.changed.notify_one();
                return true;
            }
        }
        false
    }

    fn has_running(&self, key: &SessionKey) -> bool {
        let filter = ListFilter {
            status: Some(ProcessStatus::Running),
            ..ListFilter::default()
        };
        let engine = self.0.mcp_state.engine();
        !engine.list(&caller(key), &filter).is_empty()
    }

    /// The MCP session with this id.
    pub(super) fn mcp_session(&self, id: &str) -> Option<McpSession> {
        self.0.table.lock().mcp_session(id).cloned()
    }

    /// Ends what a client that is limited to projects sees of a session, which others may use.
    ///
    /// # Errors
    /// As [`end`](Self::end).
    pub(super) async fn end_part(&self, caller: &Caller) -> Result<(), ostler_engine::Error> {
        self.0.mcp_state.end_session(caller).await
    }

    /// Ends a session: finite executions are stopped and cleaned, the others pass to the principal.
    ///
    /// # Errors
    /// When an execution cannot be stopped or cleaned.
    pub(super) async fn end(&self, key: &SessionKey) -> Result<(), ostler_engine::Error> {
        self.0.table.lock().begin_end(key);
        self.0.changed.notify_one();
        self.0.mcp_state.end_session(&caller(key)).await?;
        self.0.table.lock().finish_end(key);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Whether the session has executions of clients that are not on the network, such as
    /// `ostler mcp --session NAME`: theirs last until they are told to end.
    fn is_local(&self, key: &SessionKey) -> bool {
        let engine = self.0.mcp_state.engine();
        let executions = engine.list(&caller(key), &ListFilter::default());
        let mut owners = executions.iter().map(|info| &info.owner);
        owners.any(|owner| owner.session.as_ref() == Some(&key.session) && owner.channel.is_local())
    }

    async fn end_idle(&self, key: &SessionKey) {
        if let Err(error) = self.end(key).await {
            let session = &key.session;
            tracing::warn!(%session, %error, "the session did not end cleanly");
        }
    }

    fn save(&self) {
        let Some(file) = &self.0.file else {
            return;
        };
        let stored = self.0.table.lock().take_changed();
        if let Some(stored) = stored
            && let Err(error) = store(file, &stored)
        {
            tracing::warn!(path = %file.display(), %error, "sessions cannot be kept");
        }
    }
}

impl SessionUses for HttpSessions {
    fn begin_named_use(
        &self,
        principal: &Principal,
        session: &SessionName,
    ) -> Result<Option<SessionUseGuard>, HttpProblem> {
        if session.0.starts_with(STDIO_PREFIX) {
            return Ok(None);
        }
        let key = SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        };
        let mcp_session = session.0.strip_prefix(MCP_PREFIX).filter(|id| {
            let mcp_session = self.mcp_session(id);
            mcp_session.is_some_and(|mcp_session| mcp_session.key == key)
        });
        let usage_key = match mcp_session {
            Some(id) => UsageKey::McpSession(id.to_owned()),
            None => {
                self.admit(&key, false)?;
                UsageKey::Session(key)
            }
        };
        Ok(Some(Arc::new(self.begin_use(vec![usage_key]))))
    }

    fn begin_shared_use(
        &self,
        principal: &Principal,
        session: &SessionName,
    ) -> Option<SessionUseGuard> {
        let key = UsageKey::Session(SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        });
        let is_known = self.0.table.lock().has(&key);
        is_known.then(|| Arc::new(self.begin_use(vec![key])) as SessionUseGuard)
    }
}

impl SessionHooks for HttpSessions {
    fn on_session_started(&self, id: &str, initialize: Value, extensions: &mut http::Extensions) {
        let is_anonymous = extensions.get::<AnonymousInitialize>().is_some();
        let Some(client) = extensions.get_mut::<Arc<ConnectedClient>>() else {
            return;
        };
        let mut table = self.0.table.lock();
        if table.mcp_session(id).is_some() {
            return;
        }
        if is_anonymous {
            let session = SessionName(format!("{MCP_PREFIX}{id}"));
            let caller = &mut Arc::make_mut(client).caller;
            caller.owner.session = Some(session);
            caller.scope = Scope::Session;
        }
        let Some(key) = SessionKey::of(&client.caller) else {
            return;
        };
        let mcp_session = McpSession {
            key,
            access: client.access.clone(),
            own: is_anonymous,
            initialize,
            standing: StandingRequests::default(),
        };
        table.insert_mcp_session(id, mcp_session, Instant::now());
        drop(table);
        self.0.changed.notify_one();
    }

    fn initialize_params(&self, id: &str) -> Option<Value> {
        self.0
            .table
            .lock()
            .mcp_session(id)
            .map(|session| session.initialize.clone())
    }

    fn standing_requests(&self, id: &str) -> StandingRequests {
        let session = self.mcp_session(id);
        session.map(|session| session.standing).unwrap_or_default()
    }

    fn change_standing_requests(&self, id: &str, change: &dyn Fn(&mut StandingRequests)) {
        self.0.table.lock().change_standing(id, change);
        self.0.changed.notify_one();
    }

    fn interrupted_call(
        &self,
        id: &str,
        call: &InterruptedCall,
        cause: InterruptCause,
    ) -> Option<CallToolResult> {
        let session = self.mcp_session(id)?;
        let caller = session.access.reader(caller(&session.key));
        Some(call.result(self.0.mcp_state.engine(), &caller, cause))
    }

    fn on_session_ended<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // Sessions that a shutdown interrupts continue with the next daemon.
            if self.0.shutdown.is_cancelled() {
                return;
            }
            let session = self.0.table.lock().remove_mcp_session(id);
            self.0.changed.notify_one();
            if let Some(session) = session.filter(|session| session.own) {
                self.end_idle(&session.key).await;
            }
        })
    }
}

impl SessionKey {
    /// The session of this caller.
    pub(super) fn of(caller: &Caller) -> Option<Self> {
        Some(Self {
            principal: caller.owner.principal.clone(),
            session: caller.owner.session.clone()?,
        })
    }
}

fn caller(key: &SessionKey) -> Caller {
    Caller {
        owner: Owner {
            principal: key.principal.clone(),
            project: None,
            session: Some(key.session.clone()),
            task: None,
            channel: ostler_model::RequestChannel::Network,
        },
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut table = self.sessions.0.table.lock();
        let mut must_notify = false;
        for ended in &self.uses {
            must_notify |= table.end_use(ended, now);
        }
        drop(table);
        if must_notify {
            self.sessions.0.changed.notify_one();
        }
    }
}

fn load(file: &Path) -> Option<StoredSessions> {
    let warn = |error: &dyn std::fmt::Display| {
        tracing::warn!(path = %file.display(), %error, "earlier sessions are forgotten");
    };
    let text = match regular_file::open(file).and_then(io::read_to_string) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            warn(&error);
            return None;
        }
    };
    serde_json::from_str(&text)
        .inspect_err(|error| warn(error))
        .ok()
}

fn store(file: &Path, stored: &StoredSessions) -> io::Result<()> {
    atomic_file::replace(file, &serde_json::to_vec(stored)?, UMASK_MODE)
}
