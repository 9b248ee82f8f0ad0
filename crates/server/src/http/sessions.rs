//! Sessions over HTTP (D3): who has them, and their ends: by `DELETE`, or when nobody has
//! come for long enough. A request under way and an open stream count as coming.
//!
//! What there is stands in a small file too, so that the next daemon goes on from there after
//! a crash or an upgrade: it ends what nobody comes back to, and knows the handshake era's MCP
//! sessions again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ostler_model::owner::Owner;
use ostler_model::{Caller, ErrorCode, Scope, SessionName};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::table::{Full, Kept, Key, Place, SESSIONS, SESSIONS_OF_ONE, Table, Talk};
use crate::mcp::{Client, Desk, Doorkeeper, Streamable};
use crate::wire::Problem;

/// The sessions of HTTP clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sessions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    desk: Desk,
    idle: Duration,
    file: Option<PathBuf>,
    shutdown: CancellationToken,
    table: Mutex<Table>,
    /// There is something new to look for, or to keep.
    news: Notify,
}

/// Marks an `initialize` that may begin a session of its own: it names none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unnamed;

/// A session in use, until it is dropped.
#[derive(Debug)]
pub(super) struct Stay {
    sessions: Sessions,
    places: Vec<Place>,
}

impl Sessions {
    /// None yet but what an earlier daemon left in `file`.
    pub(super) fn new(
        desk: Desk,
        idle: Duration,
        file: Option<PathBuf>,
        shutdown: CancellationToken,
    ) -> Self {
        let mut table = Table::default();
        if let Some(kept) = file.as_deref().and_then(read) {
            table.take_up(kept, Instant::now());
        }
        Self(Arc::new(Shared {
            desk,
            idle,
            file,
            shutdown,
            table: Mutex::new(table),
            news: Notify::new(),
        }))
    }

    /// Ends idle sessions and keeps the file, until the shutdown.
    pub(super) async fn keep(self, mcp: Streamable) {
        let shutdown = self.0.shutdown.clone();
        loop {
            let (due, next) = self.table().due(Instant::now(), self.0.idle);
            for place in due {
                tracing::info!(?place, "a session over HTTP ended for idleness");
                match place {
                    Place::Session(key) => self.end_idle(&key).await,
                    Place::Talk(id) => mcp.close(&id).await,
                }
            }
            self.save();
            let look = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.0.news.notified() => {}
                () = look => {}
            }
        }
        self.save();
    }

    /// Uses these places until the answer is through.
    pub(super) fn enter(&self, places: Vec<Place>) -> Stay {
        let now = Instant::now();
        for place in &places {
            self.table().enter(place.clone(), now);
        }
        let sessions = self.clone();
        Stay { sessions, places }
    }

    /// As [`Table::admit`].
    ///
    /// # Errors
    /// As there, for the client.
    pub(super) fn admit(&self, key: &Key, begins: bool) -> Result<(), Problem> {
        self.table().admit(key, begins).map_err(|full| {
            let message = match full {
                Full::All => format!("there are {SESSIONS} sessions over HTTP"),
                Full::Principal => {
                    format!("this token has {SESSIONS_OF_ONE} sessions over HTTP, all it may have")
                }
            };
            let hint = "end some with DELETE; idle ones end by themselves";
            Problem::new(ErrorCode::QuotaExceeded, message, None).with_hint(hint)
        })
    }

    /// The MCP session with this id.
    pub(super) fn talk(&self, id: &str) -> Option<Talk> {
        self.table().talk(id).cloned()
    }

    /// Ends a session: finite executions stop and are cleaned, the rest passes on (D3).
    ///
    /// # Errors
    /// When something does not stop or cannot be cleaned.
    pub(super) async fn end(&self, key: &Key) -> Result<(), ostler_engine::Error> {
        self.table().end(key);
        self.0.news.notify_one();
        self.0.desk.end_session(&caller(key)).await
    }

    async fn end_idle(&self, key: &Key) {
        if let Err(error) = self.end(key).await {
            let session = &key.session;
            tracing::warn!(%session, %error, "the session did not end cleanly");
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is whole.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self) {
        let Some(file) = &self.0.file else {
            return;
        };
        let kept = self.table().take_changes();
        if let Some(kept) = kept
            && let Err(error) = write(file, &kept)
        {
            tracing::warn!(path = %file.display(), %error, "sessions cannot be kept");
        }
    }
}

impl Doorkeeper for Sessions {
    fn begun(&self, id: &str, initialize: Value, extensions: &mut http::Extensions) {
        let unnamed = extensions.get::<Unnamed>().is_some();
        let Some(client) = extensions.get_mut::<Arc<Client>>() else {
            return;
        };
        let mut table = self.table();
        if table.talk(id).is_some() {
            return;
        }
        if unnamed {
            let session = SessionName(format!("mcp-{id}"));
            let caller = &mut Arc::make_mut(client).caller;
            caller.owner.session = Some(session);
            caller.scope = Scope::Session;
        }
        let Some(key) = Key::of(&client.caller) else {
            return;
        };
        let talk = Talk {
            key,
            own: unnamed,
            initialize,
        };
        table.begin(id, talk, Instant::now());
        drop(table);
        self.0.news.notify_one();
    }

    fn known(&self, id: &str) -> Option<Value> {
        self.table().talk(id).map(|talk| talk.initialize.clone())
    }

    fn ended<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // What a shutdown ends goes on with the next daemon.
            if self.0.shutdown.is_cancelled() {
                return;
            }
            let ended = self.table().end_talk(id);
            self.0.news.notify_one();
            if let Some(talk) = ended.filter(|talk| talk.own) {
                self.end_idle(&talk.key).await;
            }
        })
    }
}

impl Key {
    /// The session of this caller.
    pub(super) fn of(caller: &Caller) -> Option<Self> {
        Some(Self {
            principal: caller.owner.principal.clone(),
            session: caller.owner.session.clone()?,
        })
    }
}

fn caller(key: &Key) -> Caller {
    Caller {
        owner: Owner {
            principal: key.principal.clone(),
            project: None,
            session: Some(key.session.clone()),
            task: None,
            channel: ostler_model::Channel::Network,
        },
        scope: Scope::Session,
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut table = self.sessions.table();
        let mut look = false;
        for place in &self.places {
            look |= table.leave(place, now);
        }
        drop(table);
        if look {
            self.sessions.0.news.notify_one();
        }
    }
}

fn read(file: &Path) -> Option<Kept> {
    let told = |error: &dyn std::fmt::Display| {
        tracing::warn!(path = %file.display(), %error, "earlier sessions are forgotten");
    };
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            told(&error);
            return None;
        }
    };
    serde_json::from_slice(&bytes)
        .inspect_err(|error| told(error))
        .ok()
}

fn write(file: &Path, kept: &Kept) -> io::Result<()> {
    let aside = file.with_extension("new");
    fs::write(&aside, serde_json::to_vec(kept)?)?;
    fs::rename(&aside, file)
}
