//! The daemon's life, from the lock to the orderly shutdown.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_engine::Engine;
use ostler_model::ErrorCode;
use ostler_process::{Keeper, LocalPlace};
use ostler_server::mcp::Desk;
use ostler_server::wire::Problem;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::fronts::Fronts;
use super::launch::Readiness;
use super::lock::{self, Held, Tried};
use super::presence::{self, Presence};
use super::sessions;
use super::sockets::{self, Sockets};
use super::web::Web;
use crate::config::{Config, Environment, check_secrets};
use crate::error::{CommandError, Outcome};
use crate::paths::Places;

/// How the daemon calls itself in `ps` and `top`.
const DAEMON_NAME: &str = "ostler-daemon";
/// Threads that serve; commands run in processes of their own.
const WORKERS: usize = 4;
/// How long an orderly shutdown waits for connections to end, in milliseconds.
const DRAIN_MS: u64 = 5_000;
/// How long what runs on threads of its own, such as searches, may take to end after everything
/// else has, in milliseconds.
const BLOCKING_MS: u64 = 2_000;

/// How a daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// By a person, in the foreground (`ostler serve`); never ends by itself.
    Foreground,
    /// By a command that needed one; says on standard output when it serves.
    OnDemand,
}

/// Runs the daemon until it is told to end or has nothing to do.
///
/// # Errors
/// When it cannot start: another one runs, or its directories cannot be used.
pub(crate) fn run(config: &Config, env: &Environment, how: How) -> Outcome {
    name_process();
    super::log::start(&config.log_filter());
    raise_open_files();
    match how {
        How::Foreground => serve(config, env, how).map(|()| 0),
        How::OnDemand => {
            detach();
            serve(config, env, how)
                .map(|()| 0)
                .inspect_err(|error| announce(&failed(error)))
        }
    }
}

/// A descriptor for each execution: the usual soft limit of 1,024 is for programs of old that
/// use select(2). Commands get it back.
fn raise_open_files() {
    match ostler_process::open_files::raise() {
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "the limit on open files stays"),
    }
}

/// The program to start again as daemon or keeper, also when its file was replaced.
pub(crate) fn executable() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Our own session, so that the terminal of whoever started us is not ours.
fn detach() {
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "already a session of its own");
    }
}

fn name_process() {
    let name = std::ffi::CString::new(DAEMON_NAME).unwrap_or_default();
    if let Err(error) = rustix::thread::set_name(&name) {
        tracing::debug!(%error, "the process keeps its name");
    }
}

fn serve(config: &Config, env: &Environment, how: How) -> Result<(), CommandError> {
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let places = config.places();
    places.prepare()?;
    let mut held = match (hold(&places)?, how) {
        (Tried::Held(held), _) => held,
        (Tried::Busy(holder), How::Foreground) => return Err(busy(&places, holder)),
        (Tried::Busy(holder), How::OnDemand) => {
            announce(&Readiness::Busy(holder));
            return Ok(());
        }
    };
    held.note(&places.state);
    // Let go with the process: none that comes next may bind what this one still removes.
    let held = Arc::new(Mutex::new(held));
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let web = Web::open(config, env, how)?;
        let daemon = Daemon::open(config, env, &places, Arc::clone(&held)).await?;
        let web = web.map(|web| web.admit(config, how)).transpose()?;
        match how {
            How::Foreground => crate::commands::serve::greet(config, web.as_ref())?,
            How::OnDemand => announce(&Readiness::Ready(std::process::id())),
        }
        ostler_process::unmap_program();
        // Nobody can start a daemon over HTTP, so one that serves it stays.
        let idle = config.idle_exit();
        let idle = idle.filter(|_| how == How::OnDemand && web.is_none());
        daemon.serve(web, idle).await
    });
    // A search in the middle of a long line hears of nothing.
    runtime.shutdown_timeout(Duration::from_millis(BLOCKING_MS));
    served
}

fn runtime() -> Result<Runtime, CommandError> {
    ostler_process::keep_freed_memory();
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(WORKERS);
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(DAEMON_NAME)
        .enable_all()
        .build()
        .map_err(|error| CommandError::daemon(format!("no threads can be started: {error}")))
}

/// One daemon per sockets. A person is told who else serves; whoever started one on demand
/// waits until that one serves or has ended.
fn hold(places: &Places) -> Result<Tried, CommandError> {
    let path = places.lock();
    lock::try_hold(&path).map_err(|error| {
        let message = format!("{} cannot be locked: {error}", path.display());
        CommandError::new(ErrorCode::Storage, message)
    })
}

fn busy(places: &Places, holder: Option<u32>) -> CommandError {
    let holder = holder.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    );
    let state = places.state.display();
    CommandError::daemon(format!("{holder} already serves {state}"))
        .with_hint("use it, end it with `ostler shutdown`, or name another --state-dir")
}

fn failed(error: &CommandError) -> Readiness {
    let (message, hint) = match error {
        CommandError::Told { message, hint, .. } => (message.clone(), hint.clone()),
        CommandError::Disconnected(_) | CommandError::BrokenPipe => (error.to_string(), None),
    };
    let code = error.code().unwrap_or(ErrorCode::Initialization);
    Readiness::Failed(Problem::new(code, message, hint))
}

/// Tells the starter, and lets go of the pipe it listens on.
fn announce(readiness: &Readiness) {
    if let Ok(line) = crate::hello::line(readiness) {
        #[expect(clippy::disallowed_methods, reason = "a program reads it")]
        let mut stdout = io::stdout();
        // A starter that is gone is no reason to end.
        drop(stdout.write_all(&line).and_then(|()| stdout.flush()));
    }
    match std::fs::File::options().write(true).open("/dev/null") {
        Ok(null) => drop(rustix::stdio::dup2_stdout(null)),
        Err(error) => tracing::warn!(%error, "standard output stays open"),
    }
}

/// What serves.
struct Daemon {
    engine: Engine,
    fronts: Fronts,
    sockets: Sockets,
    held: Arc<Mutex<Held>>,
    places: Places,
}

impl Daemon {
    async fn open(
        config: &Config,
        env: &Environment,
        places: &Places,
        held: Arc<Mutex<Held>>,
    ) -> Result<Self, CommandError> {
        let engine = open_engine(config, env, Keeper::Executable(executable())).await?;
        let fronts = Fronts {
            engine: engine.clone(),
            desk: Desk::new(engine.clone(), config.mcp_options()),
            tracker: TaskTracker::new(),
            presence: Presence::new(),
            stop: CancellationToken::new(),
        };
        sessions::end_orphans(&engine, &fronts.tracker, &fronts.stop);
        Ok(Self {
            engine,
            fronts,
            sockets: Sockets::bind(places)?,
            held,
            places: places.clone(),
        })
    }

    /// Serves until something says stop, then ends in order.
    async fn serve(
        self,
        web: Option<Web>,
        idle_exit: Option<Duration>,
    ) -> Result<(), CommandError> {
        let Fronts {
            tracker,
            presence,
            stop,
            desk,
            ..
        } = self.fronts.clone();
        tracker.spawn(sockets::keep(
            self.sockets,
            self.held,
            self.places.clone(),
            self.fronts.clone(),
        ));
        if let Some(web) = web {
            tracker.spawn(web.serve(self.fronts.clone()));
        }
        let idle = async {
            match idle_exit {
                Some(limit) => {
                    presence::idle(self.engine.activity(), presence.watch(), limit).await;
                }
                None => std::future::pending().await,
            }
        };
        let why = tokio::select! {
            told = told_to_end() => { told?; "a signal" }
            () = stop.cancelled() => "a request",
            () = idle => "idleness",
        };
        tracing::info!(why, "shutting down");
        stop.cancel();
        // Clients that come from now on start the next daemon, which waits for our lock.
        remove_sockets(&self.places);
        desk.close().await;
        // Streams that follow a living execution end with the engine.
        self.engine.shutdown().await;
        tracker.close();
        if tokio::time::timeout(Duration::from_millis(DRAIN_MS), tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!("some connections did not end in time");
        }
        Ok(())
    }
}

/// Opens the engine on this machine.
///
/// # Errors
/// When the state directory or the keeper cannot be used.
pub(crate) async fn open_engine(
    config: &Config,
    env: &Environment,
    keeper: Keeper,
) -> Result<Engine, CommandError> {
    try_open_engine(config, env, keeper)
        .await?
        .map_err(|error| CommandError::from(&error))
}

/// The same, with the engine's own error, so that a locked directory can be told.
///
/// # Errors
/// When the place cannot be opened.
pub(crate) async fn try_open_engine(
    config: &Config,
    env: &Environment,
    keeper: Keeper,
) -> Result<Result<Engine, ostler_engine::Error>, CommandError> {
    if let Some(path) = config.secrets_file() {
        check_secrets(&path)?;
    }
    let config = config.clone().with_policy(env)?.with_table()?;
    let settings = config.engine_settings(env.to_texts());
    let place = LocalPlace::open(&settings.state_dir, keeper)
        .await
        .map_err(|error| CommandError::new(ErrorCode::Storage, error.to_string()))?;
    Ok(Engine::open(settings, Arc::new(place)).await)
}

/// Catches one kind of signal.
///
/// # Errors
/// When the system does not let us.
fn handler(kind: SignalKind) -> Result<tokio::signal::unix::Signal, CommandError> {
    signal(kind).map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))
}

/// While the lock is still held, so that none of a next daemon is hit.
fn remove_sockets(places: &Places) {
    for path in [places.daemon_socket(), places.front_socket()] {
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::debug!(%error, path = %path.display(), "the socket stays");
        }
    }
}

/// Waits until somebody tells this process to end.
///
/// # Errors
/// When signals cannot be caught.
pub(crate) async fn told_to_end() -> Result<(), CommandError> {
    let mut terminate = handler(SignalKind::terminate())?;
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut hangup = handler(SignalKind::hangup())?;
    let why = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        _ = hangup.recv() => "SIGHUP",
    };
    tracing::info!(why, "told to end");
    Ok(())
}
