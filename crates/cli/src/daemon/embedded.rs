//! The same engine inside a front (`--no-daemon`): commands end with their front, unless
//! they are durable, and state lies where no daemon looks.

use ostler_server::mcp::Desk;
use std::path::{Path, PathBuf};

use ostler_engine::Engine;
use ostler_process::Keeper;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::fronts::Fronts;
use super::presence::Presence;
use super::run::{executable, open_engine, try_open_engine};
use super::sessions;
use crate::config::{Config, Environment};
use crate::error::CommandError;
use crate::paths;
use crate::socket;

/// An engine of our own.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) engine: Engine,
    pub(crate) desk: Desk,
    tracker: TaskTracker,
    stop: CancellationToken,
    scratch: Option<PathBuf>,
}

impl Embedded {
    /// Opens an engine on the state directory, or on one of its own where a daemon holds
    /// that; then says so.
    ///
    /// # Errors
    /// When neither can be used.
    pub(crate) async fn open(config: &Config, env: &Environment) -> Result<Self, CommandError> {
        config.places().prepare()?;
        let keeper = Keeper::Executable(executable());
        let (engine, scratch) = match try_open_engine(config, env, keeper).await? {
            Err(ostler_engine::Error::Locked { .. }) => {
                let (engine, directory) = aside(config, env).await?;
                (engine, Some(directory))
            }
            opened => (opened.map_err(|error| CommandError::from(&error))?, None),
        };
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        sessions::end_orphans(&engine, &tracker, &stop);
        let desk = Desk::new(engine.clone(), config.mcp_options());
        Ok(Self {
            engine,
            desk,
            tracker,
            stop,
            scratch,
        })
    }

    /// Serves REST to ourselves at `socket`.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub(crate) fn listen(&self, socket: &Path) -> Result<(), CommandError> {
        let bound = socket::bind(socket).and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        let listener = bound.map_err(|error| {
            CommandError::daemon(format!("cannot listen at {}: {error}", socket.display()))
        })?;
        let shared = Fronts {
            engine: self.engine.clone(),
            desk: self.desk.clone(),
            tracker: self.tracker.clone(),
            presence: Presence::new(),
            stop: self.stop.clone(),
        };
        self.tracker.spawn(super::http::serve(listener, shared));
        Ok(())
    }

    /// Ends the engine; a directory of its own goes with it.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.engine.shutdown().await;
        self.tracker.close();
        self.tracker.wait().await;
        if let Some(directory) = &self.scratch
            && let Err(error) = std::fs::remove_dir_all(directory)
        {
            crate::tell(&format!("{} stays: {error}", directory.display()));
        }
    }
}

/// An engine on a state directory of its own. Nobody will ever look there again, so commands
/// do not outlive it.
async fn aside(config: &Config, env: &Environment) -> Result<(Engine, PathBuf), CommandError> {
    let directory = paths::make_scratch(env, "ostler-alone-")?;
    let config = config.clone().with_state_dir(&directory);
    let engine = open_engine(&config, env, Keeper::None).await?;
    crate::tell(&format!(
        "a daemon holds the state directory; state of this run is in {} and goes with it",
        directory.display()
    ));
    Ok((engine, directory))
}
