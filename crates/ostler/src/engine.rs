//! [`Engine`]: an engine over this machine. Its methods are in one file for each subject.

mod commands;
mod contexts;
mod destroy;
mod events;
mod executions;
mod interactions;
mod lifecycle;
mod output;
mod services;
mod shells;
mod terminals;

use std::path::PathBuf;
use std::sync::Arc;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::Settings;
use ostler_model::{Caller, Owner, Principal, Scope};
use thiserror::Error;

pub use self::destroy::DestroyError;

/// An engine over this machine. Cheap to clone; every clone is the same engine.
///
/// Every method takes the [`Caller`] on whose behalf it acts and hides executions of others from
/// it: an id that the caller may not see is unknown to it.
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
        let backend =
            LocalBackend::open_with_durability(&settings.state_dir, zygote, settings.durability)
                .await?;
        let engine = ostler_engine::Engine::open(settings, Arc::new(backend)).await?;
        Ok(Self(engine))
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
            projects: ostler_model::ProjectView::default(),
        }
    }
}
