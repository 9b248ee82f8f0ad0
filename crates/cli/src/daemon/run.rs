//! The life of the daemon, from the lock to the orderly shutdown.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_api::Problem;
use ostler_backend_local::ZygoteConfig;
use ostler_engine::{ApprovalPath, Engine};
use ostler_http::WebAccess;
use ostler_http::rest::{HostExaminer, RestState};
use ostler_http::webhook::WebhookSender;
use ostler_mcp::McpState;
use ostler_model::ErrorCode;
use ostler_sys::file_lock::FileLock;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::daemon_location;
use super::examination::TrackedExaminer;
use super::file_lock::{self, TryLock};
use super::history;
use super::http_listener::HttpListener;
use super::idle_tracker::{self, IdleTracker};
use super::launch::DaemonReadiness;
use super::listeners::{self, DaemonListeners};
use super::settings_record;
use super::stdio_server::StdioServer;
use super::stdio_sessions;
use crate::config::{Config, check_secrets, webhook_error};
use crate::containers;
use crate::error::{CommandError, CommandResult};
use crate::paths::Dirs;
use crate::process_env::ProcessEnv;

/// The process name of the daemon in `ps` and `top`.
pub(super) const DAEMON_NAME: &str = "ostler-daemon";
/// The number of worker threads; commands run in processes of their own.
const WORKERS: usize = 4;
/// Milliseconds that an orderly shutdown waits for connections to close.
const DRAIN_MS: u64 = 5_000;
/// Milliseconds that blocking tasks, such as searches, may take to end after everything else has
/// ended.
const BLOCKING_MS: u64 = 2_000;

/// How a daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartMode {
    /// By a person, in the foreground (`ostler serve`); has no idle exit.
    Foreground,
    /// By a client that needed one; reports readiness on standard output.
    OnDemand,
}

/// Runs the daemon until it is stopped or idle.
///
/// # Errors
/// When it cannot start: another one runs, or its directories cannot be used.
pub(crate) fn run(
    config: &Config,
    env: &ProcessEnv,
    mode: StartMode,
    examiner: Arc<dyn HostExaminer>,
) -> CommandResult {
    name_process();
    super::log::start(&config.log_filter());
    raise_open_files();
    match mode {
        StartMode::Foreground => serve(config, env, mode, examiner).map(|()| 0),
        StartMode::OnDemand => {
            detach();
            serve(config, env, mode, examiner)
                .map(|()| 0)
                .inspect_err(|error| report_readiness(&readiness_error(error)))
        }
    }
}

/// Raises the limit of open files: each execution needs descriptors, and the default soft limit of
/// 1,024 exists for programs that use select(2). Commands get the original limit.
fn raise_open_files() {
    match ostler_sys::open_files::raise_limit() {
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "the limit on open files stays"),
    }
}

/// The program to start as daemon or zygote, also when its file was replaced.
pub(crate) fn executable() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Starts a new session, without the controlling terminal of the starter.
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

fn serve(
    config: &Config,
    env: &ProcessEnv,
    mode: StartMode,
    examiner: Arc<dyn HostExaminer>,
) -> Result<(), CommandError> {
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let dirs = config.dirs();
    dirs.prepare()?;
    let lock = match (try_lock(&dirs)?, mode) {
        (TryLock::Acquired(lock), _) => lock,
        (TryLock::Busy(holder), StartMode::Foreground) => {
            return Err(already_served(&dirs, holder));
        }
        (TryLock::Busy(holder), StartMode::OnDemand) => {
            report_readiness(&DaemonReadiness::Busy(holder));
            return Ok(());
        }
    };
    file_lock::write_state_dir(&lock, &dirs.state);
    settings_record::write(config, &dirs);
    // Released only with the process: no later daemon may bind sockets that this one still removes.
    let lock = Arc::new(Mutex::new(lock));
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let (http_listener, http_problem) = HttpListener::open(config, env, mode)?.into_parts();
        let web_access = http_listener.as_ref().map(HttpListener::web_access);
        let lock = Arc::clone(&lock);
        let daemon = Daemon::open(config, env, lock, web_access.clone(), examiner).await?;
        let daemon = daemon.with_http_problem(http_problem);
        let http_listener = http_listener
            .map(|web| web.ensure_token(config, mode))
            .transpose()?;
        match mode {
            StartMode::Foreground => {
                let web = http_listener.as_ref().zip(web_access.as_ref());
                super::banner::print_banner(config, web)?;
            }
            StartMode::OnDemand => report_readiness(&DaemonReadiness::Ready(std::process::id())),
        }
        ostler_sys::resident_memory::unmap_program();
        // Clients cannot start a daemon over HTTP, so one that serves it does not exit when idle.
        let idle_exit = config.idle_exit();
        let idle_exit =
            idle_exit.filter(|_| mode == StartMode::OnDemand && http_listener.is_none());
        daemon.serve(http_listener, idle_exit).await
    });
    // A search in the middle of a long line cannot be cancelled.
    runtime.shutdown_timeout(Duration::from_millis(BLOCKING_MS));
    result
}

fn runtime() -> Result<Runtime, CommandError> {
    ostler_sys::resident_memory::keep_freed_memory();
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

/// Takes the lock: one daemon for each pair of sockets. In the foreground, the error names the
/// other daemon; a client that started one on demand waits until the other serves or has exited.
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
    // The daemon of this runtime directory may serve another state directory.
    let state = daemon_location::recorded_state_dir(&dirs.lock());
    let state = state.as_ref().unwrap_or(&dirs.state).display();
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

/// Reports to the starter, and closes the pipe.
fn report_readiness(readiness: &DaemonReadiness) {
    if let Ok(line) = crate::stdio_protocol::encode_line(readiness) {
        #[expect(clippy::disallowed_methods, reason = "a program reads it")]
        let mut stdout = io::stdout();
        // A starter that exited is no reason to stop.
        drop(stdout.write_all(&line).and_then(|()| stdout.flush()));
    }
    match std::fs::File::options().write(true).open("/dev/null") {
        Ok(null) => drop(rustix::stdio::dup2_stdout(null)),
        Err(error) => tracing::warn!(%error, "standard output stays open"),
    }
}

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
        lock: Arc<Mutex<FileLock>>,
        web_access: Option<WebAccess>,
        examiner: Arc<dyn HostExaminer>,
    ) -> Result<Self, CommandError> {
        let dirs = config.dirs();
        let webhook = config.webhook()?.map(WebhookSender::new).transpose();
        let webhook = webhook.map_err(|error| webhook_error(&error))?;
        let engine = open_engine(config, env, ZygoteConfig::Executable(executable())).await?;
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let history = history::spawn(&engine, Some(config), &tracker, &stop);
        let webhook = webhook.map(|sender| {
            let counts = sender.counts();
            tracker.spawn(sender.run(engine.subscribe_alerts(), stop.clone()));
            counts
        });
        let rest = RestState::new(engine.clone(), stop.clone())
            .with_history(history.clone())
            .with_webhook(webhook)
            .with_templates(config.template_files())
            .with_tokens(config.tokens())
            .with_web(web_access)
            .with_examiner(Arc::new(TrackedExaminer::new(examiner, tracker.clone())));
        let mcp_options = config.mcp_options();
        let stdio_server = StdioServer {
            engine: engine.clone(),
            mcp_state: McpState::with_history(engine.clone(), mcp_options, history),
            rest,
            tracker,
            idle_tracker: IdleTracker::new(),
            stop,
        };
        stdio_sessions::end_orphans(&engine, &stdio_server.tracker, &stdio_server.stop);
        Ok(Self {
            engine,
            stdio_server,
            sockets: DaemonListeners::bind(&dirs)?,
            lock,
            dirs,
        })
    }

    /// The same with the reason why HTTP is not served although it is configured.
    fn with_http_problem(mut self, problem: Option<String>) -> Self {
        self.stdio_server.rest = self.stdio_server.rest.with_http_problem(problem);
        self
    }

    /// Serves until a stop is requested, then shuts down in order.
    async fn serve(
        self,
        http_listener: Option<HttpListener>,
        idle_exit: Option<Duration>,
    ) -> Result<(), CommandError> {
        let StdioServer {
            tracker,
            idle_tracker: presence,
            stop,
            mcp_state,
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
        // Clients that connect from now on start the next daemon, which waits for the lock.
        remove_sockets(&self.dirs);
        mcp_state.close().await;
        // Streams that follow a running execution end with the engine.
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
/// When the state directory or the zygote cannot be used.
pub(crate) async fn open_engine(
    config: &Config,
    env: &ProcessEnv,
    zygote: ZygoteConfig,
) -> Result<Engine, CommandError> {
    try_open_engine(config, env, zygote, ApprovalPath::Daemon)
        .await?
        .map_err(|error| CommandError::from(&error))
}

/// As [`open_engine`], with the engine's own error, so that a locked directory can be recognized; a
/// person answers approvals at `approval_path`.
///
/// # Errors
/// When the backend cannot be opened.
pub(crate) async fn try_open_engine(
    config: &Config,
    env: &ProcessEnv,
    zygote: ZygoteConfig,
    approval_path: ApprovalPath,
) -> Result<Result<Engine, ostler_engine::Error>, CommandError> {
    if let Some(path) = config.secrets_file() {
        check_secrets(&path)?;
    }
    let config = config.clone().with_policy(env)?.with_detection_table()?;
    let mut settings = config.engine_settings(env.to_texts());
    settings.approval_path = approval_path;
    let backend = containers::open_backend(&settings, env, zygote).await?;
    Ok(Engine::open(settings, backend).await)
}

/// Installs the handler of a signal.
///
/// # Errors
/// When the system refuses.
fn signal_stream(kind: SignalKind) -> Result<tokio::signal::unix::Signal, CommandError> {
    signal(kind).map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))
}

/// Removes the sockets while the lock is still held, so that none of a next daemon is removed.
fn remove_sockets(dirs: &Dirs) {
    for path in [dirs.daemon_socket(), dirs.stdio_socket()] {
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::debug!(%error, path = %path.display(), "the socket stays");
        }
    }
}

/// Waits for a signal that requests a shutdown.
///
/// # Errors
/// When signals cannot be handled.
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
