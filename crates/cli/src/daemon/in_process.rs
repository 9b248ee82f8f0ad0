//! The engine inside a client process (`--no-daemon`): commands end with that process unless they
//! are durable, and their state is where no daemon looks.

use ostler_mcp::McpState;
use std::path::{Path, PathBuf};

use ostler_backend_local::ZygoteConfig;
use ostler_engine::{ApprovalPath, Engine};
use ostler_http::rest::RestState;
use ostler_model::ExecutionId;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::daemon_location;
use super::history;
use super::idle_tracker::IdleTracker;
use super::run::{executable, try_open_engine};
use super::stdio_server::StdioServer;
use super::stdio_sessions;
use crate::config::Config;
use crate::error::CommandError;
use crate::paths;
use crate::process_env::ProcessEnv;
use crate::unix_socket;

/// An engine in this process.
#[derive(Debug)]
pub(crate) struct InProcessEngine {
    pub(crate) engine: Engine,
    pub(crate) mcp_state: McpState,
    rest: RestState,
    tracker: TaskTracker,
    stop: CancellationToken,
    scratch_dir: Option<PathBuf>,
}

impl InProcessEngine {
    /// Opens an engine on the state directory, or on a temporary one if that is held;
    /// reports the latter.
    ///
    /// # Errors
    /// When neither can be used.
    pub(crate) async fn open(config: &Config, env: &ProcessEnv) -> Result<Self, CommandError> {
        config.dirs().prepare()?;
        let zygote = ZygoteConfig::Executable(executable());
        let opened = try_open_engine(config, env, zygote, ApprovalPath::Client).await?;
        let (engine, scratch) = match opened {
            Err(ostler_engine::Error::Locked { .. }) => {
                let (engine, directory) = open_scratch_engine(config, env).await?;
                (engine, Some(directory))
            }
            result => (result.map_err(|error| CommandError::from(&error))?, None),
        };
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        stdio_sessions::end_orphans(&engine, &tracker, &stop);
        // What a temporary directory holds goes with it, its history too.
        let lasting = Some(config).filter(|_| scratch.is_none());
        let history = history::spawn(&engine, lasting, &tracker, &stop);
        let options = config.mcp_options();
        let rest = RestState::new(engine.clone(), stop.clone())
            .with_history(history.clone())
            .with_templates(config.template_files())
            .with_tokens(config.tokens());
        let mcp_state = McpState::with_history(engine.clone(), options, history);
        Ok(Self {
            engine,
            mcp_state,
            rest,
            tracker,
            stop,
            scratch_dir: scratch,
        })
    }

    /// Serves REST to this process at `unix_socket`.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub(crate) fn listen(&self, socket: &Path) -> Result<(), CommandError> {
        let result = unix_socket::bind(socket).and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        let listener = result.map_err(|error| {
            CommandError::daemon(format!("cannot listen at {}: {error}", socket.display()))
        })?;
        let server = StdioServer {
            engine: self.engine.clone(),
            mcp_state: self.mcp_state.clone(),
            tracker: self.tracker.clone(),
            idle_tracker: IdleTracker::new(),
            stop: self.stop.clone(),
            rest: self.rest.clone(),
        };
        self.tracker
            .spawn(super::rest_server::serve(listener, server));
        Ok(())
    }

    /// Whether its state directory is a temporary one, which is removed when it closes.
    pub(crate) const fn is_temporary(&self) -> bool {
        self.scratch_dir.is_some()
    }

    /// Closes the engine; removes a temporary state directory, unless an overlay in it waits for a
    /// decision.
    pub(crate) async fn close(self) {
        let undecided = if self.is_temporary() {
            self.engine.undecided_overlays().await
        } else {
            Vec::new()
        };
        self.stop.cancel();
        self.engine.shutdown().await;
        self.tracker.close();
        self.tracker.wait().await;
        match &self.scratch_dir {
            Some(directory) if undecided.is_empty() => remove_scratch(directory),
            Some(directory) => report_undecided(directory, &undecided),
            None => {}
        }
    }
}

fn remove_scratch(directory: &Path) {
    if let Err(error) = std::fs::remove_dir_all(directory) {
        crate::print_note(&format!("{} stays: {error}", directory.display()));
    }
}

/// Names the executions whose changes nobody has committed or discarded, and how that is done.
fn report_undecided(directory: &Path, ids: &[ExecutionId]) {
    let directory = directory.display();
    for id in ids {
        let id = id.short();
        crate::print_note(&format!(
            "{directory} stays: `ostler --state-dir {directory} diff {id}` shows what {id} changed, \
             commit or discard in place of diff decides"
        ));
    }
}

/// Opens an engine on a temporary state directory. No later process will look there, so commands
/// do not outlive it.
async fn open_scratch_engine(
    config: &Config,
    env: &ProcessEnv,
) -> Result<(Engine, PathBuf), CommandError> {
    let directory = paths::make_scratch(env, "ostler-alone-")?;
    let holder = daemon_location::state_holder(&config.dirs());
    let config = config.clone().with_state_dir(&directory);
    let opened = try_open_engine(&config, env, ZygoteConfig::InProcess, ApprovalPath::Client);
    let engine = opened.await?.map_err(|error| CommandError::from(&error))?;
    crate::print_note(&format!(
        "{holder} holds the state directory; state of this run is in {} and goes with it",
        directory.display()
    ));
    Ok((engine, directory))
}
