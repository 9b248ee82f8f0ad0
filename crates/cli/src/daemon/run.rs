//! The daemon's life, from the lock to the orderly shutdown.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_engine::Engine;
use ostler_model::ErrorCode;
use ostler_process::{LocalBackend, ZygoteConfig};
use ostler_server::mcp::McpState;
use ostler_server::wire::Problem;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::file_lock::{self, FileLock, TryLock};
use super::http_listener::HttpListener;
use super::idle_tracker::{self, IdleTracker};
use super::launch::DaemonReadiness;
use super::listeners::{self, DaemonListeners};
use super::stdio_server::StdioServer;
use super::stdio_sessions;
use crate::config::{Config, ProcessEnv, check_secrets};
use crate::error::{CommandError, CommandResult};
use crate::paths::Dirs;

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
pub(crate) enum StartMode {
    /// By a person, in the foreground (`ostler serve`); never ends by itself.
    Foreground,
    /// By a command that needed one; says on standard output when it serves.
    OnDemand,
}

/// Runs the daemon until it is told to end or has nothing to do.
///
/// # Errors
/// When it cannot start: another one runs, or its directories cannot be used.
pub(crate) fn run(config: &Config, env: &ProcessEnv, mode: StartMode) -> CommandResult {
    name_process();
    super::log::start(&config.log_filter());
    raise_open_files();
    match mode {
        StartMode::Foreground => serve(config, env, mode).map(|()| 0),
        StartMode::OnDemand => {
            detach();
            serve(config, env, mode)
                .map(|()| 0)
                .inspect_err(|error| report_readiness(&readiness_error(error)))
        }
    }
}

/// A descriptor for each execution: the usual soft limit of 1,024 is for programs of old that
/// use select(2). Commands get it back.
fn raise_open_files() {
    match ostler_process::open_files::raise_limit() {
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

fn serve(config: &Config, env: &ProcessEnv, mode: StartMode) -> Result<(), CommandError> {
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let dirs = config.dirs();
    dirs.prepare()?;
    let mut lock = match (try_lock(&dirs)?, mode) {
        (TryLock::Acquired(lock), _) => lock,
        (TryLock::Busy(holder), StartMode::Foreground) => {
            return Err(already_served(&dirs, holder));
        }
        (TryLock::Busy(holder), StartMode::OnDemand) => {
            report_readiness(&DaemonReadiness::Busy(holder));
            return Ok(());
        }
    };
    lock.write_state_dir(&dirs.state);
    // Let go with the process: none that comes next may bind what this one still removes.
    let lock = Arc::new(Mutex::new(lock));
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let http_listener = HttpListener::open(config, env, mode)?;
        let daemon = Daemon::open(config, env, &dirs, Arc::clone(&lock)).await?;
        let http_listener = http_listener
            .map(|web| web.ensure_token(config, mode))
            .transpose()?;
        match mode {
            StartMode::Foreground => {
                crate::commands::serve::print_banner(config, http_listener.as_ref())?
            }
            StartMode::OnDemand => report_readiness(&DaemonReadiness::Ready(std::process::id())),
        }
        ostler_process::unmap_program();
        // Nobody can start a daemon over HTTP, so one that serves it stays.
        let idle_exit = config.idle_exit();
        let idle_exit =
            idle_exit.filter(|_| mode == StartMode::OnDemand && http_listener.is_none());
        daemon.serve(http_listener, idle_exit).await
    });
    // A search in the middle of a long line hears of nothing.
    runtime.shutdown_timeout(Duration::from_millis(BLOCKING_MS));
    result
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
fn try_lock(dirs: &Dirs) -> Result<TryLock, CommandError> {
    let path = dirs.lock();
    file_lock::try_lock(&path).map_err(|error| {
        let message = format!("{} cannot be locked: {error}", path.display());
        CommandError::new(ErrorCode::Storage, message)
    })
}

fn already_served(dirs: &Dirs, holder: Option<u32>) -> CommandError {
    let holder = holder.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    );
    let state = dirs.state.display();
    CommandError::daemon(format!("{holder} already serves {state}"))
        .with_hint("use it, end it with `ostler shutdown`, or name another --state-dir")
}

fn readiness_error(error: &CommandError) -> DaemonReadiness {
    let (message, hint) = match error {
        CommandError::Failure { message, hint, .. } => (message.clone(), hint.clone()),
        CommandError::Disconnected(_) | CommandError::BrokenPipe => (error.to_string(), None),
    };
    let code = error.code().unwrap_or(ErrorCode::Initialization);
    DaemonReadiness::Failed(Problem::new(code, message, hint))
}

/// Tells the starter, and lets go of the pipe it listens on.
fn report_readiness(readiness: &DaemonReadiness) {
    if let Ok(line) = crate::stdio_protocol::encode_line(readiness) {
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
    stdio_server: StdioServer,
    sockets: DaemonListeners,
    lock: Arc<Mutex<FileLock>>,
    dirs: Dirs,
}

impl Daemon {
    async fn open(
        config: &Config,
        env: &ProcessEnv,
        dirs: &Dirs,
        lock: Arc<Mutex<FileLock>>,
    ) -> Result<Self, CommandError> {
        let engine = open_engine(config, env, ZygoteConfig::Executable(executable())).await?;
        let stdio_server = StdioServer {
            engine: engine.clone(),
            mcp_state: McpState::new(engine.clone(), config.mcp_options()),
            tracker: TaskTracker::new(),
            idle_tracker: IdleTracker::new(),
            stop: CancellationToken::new(),
        };
        stdio_sessions::end_orphans(&engine, &stdio_server.tracker, &stdio_server.stop);
        Ok(Self {
            engine,
            stdio_server,
            sockets: DaemonListeners::bind(dirs)?,
            lock,
            dirs: dirs.clone(),
        })
    }

    /// Serves until something says stop, then ends in order.
    async fn serve(
        self,
        http_listener: Option<HttpListener>,
        idle_exit: Option<Duration>,
    ) -> Result<(), CommandError> {
        let StdioServer {
            tracker,
            idle_tracker: presence,
            stop,
            mcp_state: desk,
            ..
        } = self.stdio_server.clone();
        tracker.spawn(listeners::serve_and_rebind(
            self.sockets,
            self.lock,
            self.dirs.clone(),
            self.stdio_server.clone(),
        ));
        if let Some(http_listener) = http_listener {
            tracker.spawn(http_listener.serve(self.stdio_server.clone()));
        }
        let idle = async {
            match idle_exit {
                Some(limit) => {
                    idle_tracker::wait_idle(
                        self.engine.running_count_watch(),
                        presence.watch(),
                        limit,
                    )
                    .await;
                }
                None => std::future::pending().await,
            }
        };
        let why = tokio::select! {
            result = wait_for_shutdown_signal() => { result?; "a signal" }
            () = stop.cancelled() => "a request",
            () = idle => "idleness",
        };
        tracing::info!(why, "shutting down");
        stop.cancel();
        // Clients that come from now on start the next daemon, which waits for our lock.
        remove_sockets(&self.dirs);
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
    env: &ProcessEnv,
    zygote: ZygoteConfig,
) -> Result<Engine, CommandError> {
    try_open_engine(config, env, zygote)
        .await?
        .map_err(|error| CommandError::from(&error))
}

/// The same, with the engine's own error, so that a locked directory can be told.
///
/// # Errors
/// When the place cannot be opened.
pub(crate) async fn try_open_engine(
    config: &Config,
    env: &ProcessEnv,
    zygote: ZygoteConfig,
) -> Result<Result<Engine, ostler_engine::Error>, CommandError> {
    if let Some(path) = config.secrets_file() {
        check_secrets(&path)?;
    }
    let config = config.clone().with_policy(env)?.with_detection_table()?;
    let settings = config.engine_settings(env.to_texts());
    let backend = LocalBackend::open(&settings.state_dir, zygote)
        .await
        .map_err(|error| CommandError::new(ErrorCode::Storage, error.to_string()))?;
    Ok(Engine::open(settings, Arc::new(backend)).await)
}

/// Catches one kind of signal.
///
/// # Errors
/// When the system does not let us.
fn signal_stream(kind: SignalKind) -> Result<tokio::signal::unix::Signal, CommandError> {
    signal(kind).map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))
}

/// While the lock is still held, so that none of a next daemon is hit.
fn remove_sockets(dirs: &Dirs) {
    for path in [dirs.daemon_socket(), dirs.stdio_socket()] {
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::debug!(%error, path = %path.display(), "the socket stays");
        }
    }
}

/// Waits until somebody tells this process to end.
///
/// # Errors
/// When signals cannot be caught.
pub(crate) async fn wait_for_shutdown_signal() -> Result<(), CommandError> {
    let mut terminate = signal_stream(SignalKind::terminate())?;
    let mut interrupt = signal_stream(SignalKind::interrupt())?;
    let mut hangup = signal_stream(SignalKind::hangup())?;
    let why = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        _ = hangup.recv() => "SIGHUP",
    };
    tracing::info!(why, "told to end");
    Ok(())
}
