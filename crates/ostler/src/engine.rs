//! An engine over this machine.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{CleanOutcome, ListFilter, Settings, StopRequest};
use ostler_model::{Caller, Owner, Principal, Scope};
use thiserror::Error;

/// Most rounds of [`Engine::destroy`]; each ends what was started during the one before.
const DESTROY_ROUNDS: u32 = 16;
/// The recorded stop reason of what [`Engine::destroy`] stopped.
const DESTROYED: &str = "destroyed";

/// An engine over this machine; everything else is [`ostler_engine::Engine`], to which it
/// dereferences. Cheap to clone; every clone is the same engine.
#[derive(Debug, Clone)]
pub struct Engine(ostler_engine::Engine);

/// Why an engine could not be opened.
#[derive(Debug, Error)]
pub enum EngineOpenError {
    /// This machine cannot be used as a backend.
    #[error(transparent)]
    Backend(#[from] ostler_backend_local::BackendOpenError),
    /// The state directory cannot be used.
    #[error(transparent)]
    Engine(#[from] ostler_engine::Error),
}

/// Why [`Engine::destroy`] could not end and remove everything.
#[derive(Debug, Error)]
pub enum DestroyError {
    /// An execution could not be stopped.
    #[error(transparent)]
    Engine(#[from] ostler_engine::Error),
    /// An execution has ended, and its files could not be removed.
    #[error("{id} cannot be removed: {reason}")]
    NotRemoved {
        /// The execution's id.
        id: String,
        /// The operating system's error text.
        reason: String,
    },
    /// New executions are started as fast as the present ones are ended.
    #[error("executions are being started as fast as they are ended")]
    StillStarting,
}

impl Engine {
    /// Opens an engine with default settings. Commands get no environment but a `PATH` unless
    /// requests bring one; see [`Settings::base_env`]. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When another engine holds the directory, it cannot be created or read, or the zygote
    /// cannot be started.
    pub async fn open(
        state_dir: impl Into<PathBuf>,
        zygote: ZygoteConfig,
    ) -> Result<Self, EngineOpenError> {
        Self::with(Settings::new(state_dir), zygote).await
    }

    /// Opens an engine with these settings.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub async fn with(settings: Settings, zygote: ZygoteConfig) -> Result<Self, EngineOpenError> {
        let backend = LocalBackend::open(&settings.state_dir, zygote).await?;
        let engine = ostler_engine::Engine::open(settings, Arc::new(backend)).await?;
        Ok(Self(engine))
    }

    /// Ends and removes everything the caller sees: what runs is stopped as
    /// [`stop`](ostler_engine::Engine::stop) does, all at once, durable executions too, then
    /// every one is cleaned. What is started meanwhile is ended and removed as well. The engine
    /// itself stays open; [`shutdown`](ostler_engine::Engine::shutdown) closes it.
    ///
    /// # Errors
    /// The first execution that could not be stopped or removed; it is still listed, and the
    /// others are gone all the same.
    pub async fn destroy(&self, caller: &Caller) -> Result<(), DestroyError> {
        let mut failure = None;
        for _round in 0..DESTROY_ROUNDS {
            let ids: Vec<String> = self
                .list(caller, &ListFilter::default())
                .iter()
                .map(|info| info.id.to_string())
                .collect();
            if ids.is_empty() {
                return Ok(());
            }
            let results = join_all(ids.iter().map(|id| self.end(caller, id))).await;
            failure = results.into_iter().find_map(Result::err);
            if failure.is_some() {
                break;
            }
        }
        Err(failure.unwrap_or(DestroyError::StillStarting))
    }

    async fn end(&self, caller: &Caller, id: &str) -> Result<(), DestroyError> {
        let request = StopRequest {
            reason: Some(DESTROYED.to_owned()),
            ..StopRequest::default()
        };
        match self.stop(caller, id, request).await {
            // The stop timed out, or another caller has cleaned the execution.
            Ok(_) | Err(ostler_engine::Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        let outcomes = self.clean(caller, &[id.to_owned()]).await?;
        match outcomes.into_iter().next().map(|(_, outcome)| outcome) {
            Some(CleanOutcome::Failed(reason)) => Err(DestroyError::NotRemoved {
                id: id.to_owned(),
                reason,
            }),
            Some(
                CleanOutcome::Cleaned
                | CleanOutcome::Discarded
                | CleanOutcome::NotFound
                | CleanOutcome::Running,
            )
            | None => Ok(()),
        }
    }

    /// A caller for the user this program runs as, who sees all executions of that user.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller {
            owner: Owner {
                principal: Principal::unix(rustix::process::geteuid().as_raw()),
                project: None,
                session: None,
                task: None,
                channel: ostler_model::RequestChannel::Local,
            },
            scope: Scope::Principal,
        }
    }
}

impl Deref for Engine {
    type Target = ostler_engine::Engine;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
