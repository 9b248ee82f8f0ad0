//! An engine over this machine.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use ostler_engine::Settings;
use ostler_model::{Caller, Owner, Principal, Scope};
use ostler_process::{Keeper, LocalPlace};
use thiserror::Error;

/// An engine over this machine; everything else is [`ostler_engine::Engine`], to which it
/// dereferences. Cheap to clone; every clone is the same engine.
#[derive(Debug, Clone)]
pub struct Engine(ostler_engine::Engine);

/// An engine that could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// This machine cannot be used as a place.
    #[error(transparent)]
    Place(#[from] ostler_process::OpenError),
    /// The state directory cannot be used.
    #[error(transparent)]
    Engine(#[from] ostler_engine::Error),
}

impl Engine {
    /// Opens an engine with default settings. Commands get no environment but a `PATH` unless
    /// requests bring one; see [`Settings::base_env`]. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When another engine holds the directory, it cannot be made or read, or the keeper
    /// cannot be started.
    pub async fn open(state_dir: impl Into<PathBuf>, keeper: Keeper) -> Result<Self, OpenError> {
        Self::with(Settings::new(state_dir), keeper).await
    }

    /// Opens an engine with these settings.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub async fn with(settings: Settings, keeper: Keeper) -> Result<Self, OpenError> {
        let place = LocalPlace::open(&settings.state_dir, keeper).await?;
        let engine = ostler_engine::Engine::open(settings, Arc::new(place)).await?;
        Ok(Self(engine))
    }

    /// The user this program runs as, who sees everything that is theirs.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller {
            owner: Owner {
                principal: Principal::unix(rustix::process::geteuid().as_raw()),
                project: None,
                session: None,
                task: None,
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
