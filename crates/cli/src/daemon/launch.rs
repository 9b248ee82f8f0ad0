//! Connects to the daemon, and starts it on demand.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ostler_api::Problem;
use ostler_sys::regular_file::WrongFileType;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::daemon_location;
use super::file_lock::{self, TryLock};
use super::socket_watch::{SocketChange, SocketWatch};
use crate::config::SettingKey;
use crate::error::CommandError;
use crate::paths::Dirs;
use crate::secret_variables::SecretVariables;
use crate::unix_socket;

/// Milliseconds until a starting daemon must serve; the recovery of thousands of executions is
/// included.
const START_TIMEOUT_MS: u64 = 30_000;
/// Milliseconds to wait for another starter's lock. That process may be stopped, and of two daemons
/// that start at once only one serves.
const LOCK_WAIT_MS: u64 = 1_000;
/// The most daemons that may be killed during their start before the caller gets an error.
const MAX_KILLED: u32 = 20;
/// Milliseconds for a running daemon to listen again in a recreated runtime directory.
const RELISTEN_MS: u64 = 1_500;
/// The lock file of starters, in the runtime directory.
const START_LOCK: &str = "start.lock";
/// The longest readiness message in bytes.
const READINESS_BYTES: u64 = 64 * 1024;
/// A log larger than this many bytes is truncated by the next daemon.
const LOG_BYTES: u64 = 8 * 1024 * 1024;
/// Variables of client policy, which is sent in the hello; a daemon also serves other clients.
pub(super) const CLIENT_KEYS: [&str; 3] = [
    "allowed_commands",
    "default_encoding",
    "retention.command_seconds",
];
/// Marks members of an execution; a daemon started from inside one is not a member.
const EXECUTION_VARIABLE: &str = "OSTLER_EXECUTION";

/// The parameters of a daemon's start.
#[derive(Debug, Clone)]
pub(crate) struct DaemonLauncher {
    dirs: Dirs,
    config: Option<PathBuf>,
    /// `KEY=VALUE` of each `--set`.
    assignments: Vec<String>,
    secrets: SecretVariables,
}

/// The message of a starting daemon on its standard output, one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DaemonReadiness {
    /// It serves; its pid.
    Ready(u32),
    /// It exits: another daemon holds the lock, with this pid if recorded.
    Busy(Option<u32>),
    /// It failed to start.
    Failed(Problem),
}

impl DaemonLauncher {
    /// A launcher for these directories, with the same configuration file and these secrets.
    pub(crate) const fn new(dirs: Dirs, config: Option<PathBuf>, secrets: SecretVariables) -> Self {
        Self {
            dirs,
            config,
            assignments: Vec::new(),
            secrets,
        }
    }

    /// The same, with these values of `--set`, but for those of one client.
    pub(crate) fn with_assignments(mut self, assignments: Vec<String>) -> Self {
        let is_of_daemon = |assignment: &String| {
            let name = assignment.split_once('=').map(|(name, _)| name);
            !name.is_some_and(|name| CLIENT_KEYS.contains(&name))
        };
        self.assignments = assignments.into_iter().filter(is_of_daemon).collect();
        self
    }
}

/// Connects to the daemon's `unix_socket`; if no process listens, starts one with `launcher` first.
/// Starters take a lock, so that many concurrent callers start one daemon; but the process that
/// holds the lock or starts the daemon may be killed or stopped at any moment, so callers wait only
/// for the daemon itself.
///
/// # Errors
/// When there is no daemon and none can be started; the error contains the cause.
pub(crate) fn connect_or_start(
    socket: &Path,
    launcher: Option<&DaemonLauncher>,
) -> Result<UnixStream, CommandError> {
    if let Some(stream) = connect(socket)? {
        return Ok(stream);
    }
    let Some(launch) = launcher else {
        return Err(CommandError::daemon("no daemon is running")
            .with_hint("any command that needs one starts it, for example `ostler ps`"));
    };
    launch.dirs.prepare()?;
    let mut attempt = StartAttempt::new(launch);
    loop {
        // The watch begins before the first check, so that no change is missed.
        let watch = SocketWatch::new(socket).map_err(|error| unreachable_error(socket, &error))?;
        if let Some(stream) = connect(socket)? {
            return Ok(stream);
        }
        attempt.step(&watch)?;
    }
}

/// Connects; none if no process listens.
fn connect(socket: &Path) -> Result<Option<UnixStream>, CommandError> {
    match unix_socket::connect(socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if unix_socket::is_not_listening(&error) => Ok(None),
        Err(error) => Err(unreachable_error(socket, &error)),
    }
}

fn unreachable_error(socket: &Path, error: &io::Error) -> CommandError {
    CommandError::daemon(format!("{} cannot be reached: {error}", socket.display()))
}

/// The attempt of one caller to reach a daemon.
#[derive(Debug)]
struct StartAttempt<'a> {
    launcher: &'a DaemonLauncher,
    /// When the caller stops waiting.
    deadline: Instant,
    /// Until when the lock of another starter is respected.
    lock_deadline: Option<Instant>,
    /// The number of daemons that were killed during their start.
    killed_starts: u32,
    /// Until when a running daemon may listen again.
    relisten_deadline: Option<Instant>,
}

/// The outcome of a daemon's start.
#[derive(Debug)]
enum StartOutcome {
    /// The daemon accepts connections.
    Ready,
    /// Another one, with this pid, holds the lock: it starts, serves or ends.
    Busy(Option<u32>),
    /// A signal killed it.
    Killed,
}

impl<'a> StartAttempt<'a> {
    fn new(launcher: &'a DaemonLauncher) -> Self {
        Self {
            launcher,
            deadline: Instant::now() + Duration::from_millis(START_TIMEOUT_MS),
            lock_deadline: None,
            killed_starts: 0,
            relisten_deadline: None,
        }
    }

    /// Makes one step: starts a daemon, or waits for that of another starter. No process listened
    /// just before.
    fn step(&mut self, watch: &SocketWatch) -> Result<(), CommandError> {
        if let Some((pid, reason)) = daemon_location::unreachable_daemon(&self.launcher.dirs) {
            // Its runtime directory was just recreated: it will listen there soon.
            let limit = Instant::now() + Duration::from_millis(RELISTEN_MS);
            let until = *self.relisten_deadline.get_or_insert(limit);
            return match map_wait_error(watch.wait(Some(pid), until))? {
                SocketChange::Changed => Ok(()),
                SocketChange::TimedOut => Err(CommandError::daemon(reason)),
            };
        }
        let path = self.launcher.dirs.runtime.join(START_LOCK);
        let start_lock = file_lock::try_lock(&path).map_err(|error| {
            CommandError::daemon(format!("{} cannot be locked: {error}", path.display()))
        })?;
        let now = Instant::now();
        if let TryLock::Busy(holder) = start_lock {
            let limit = now + Duration::from_millis(LOCK_WAIT_MS);
            let until = *self.lock_deadline.get_or_insert(limit);
            if now < until {
                return map_wait_error(watch.wait(holder, until)).map(drop);
            }
            // The starter may be stopped. The daemons' own lock decides which one serves.
        }
        let ready_process = match start_daemon(self.launcher, self.deadline)? {
            StartOutcome::Ready => None,
            StartOutcome::Busy(pid) => Some(pid),
            StartOutcome::Killed if self.killed_starts < MAX_KILLED => {
                self.killed_starts += 1;
                None
            }
            StartOutcome::Killed => return Err(starts_killed(&self.launcher.dirs)),
        };
        let change = match ready_process {
            Some(pid) => map_wait_error(watch.wait(pid, self.deadline))?,
            None => SocketChange::Changed,
        };
        if change == SocketChange::TimedOut || Instant::now() >= self.deadline {
            return Err(start_timed_out(
                &self.launcher.dirs,
                ready_process.flatten(),
            ));
        }
        Ok(())
    }
}

fn map_wait_error(change: io::Result<SocketChange>) -> Result<SocketChange, CommandError> {
    change.map_err(|error| CommandError::daemon(format!("no wait for the daemon: {error}")))
}

fn start_daemon(
    launcher: &DaemonLauncher,
    deadline: Instant,
) -> Result<StartOutcome, CommandError> {
    let start_error =
        |error: io::Error| CommandError::daemon(format!("the daemon cannot be started: {error}"));
    let (reader, writer) = io::pipe().map_err(start_error)?;
    let log = open_log(&launcher.dirs)?;
    // The parent of the daemon exits soon; init reaps it.
    let mut child = daemon_command(launcher)
        .stdin(launcher.secrets.to_stdin().map_err(start_error)?)
        .stdout(writer)
        .stderr(log)
        .spawn()
        .map_err(start_error)?;
    match read_readiness(reader, deadline)? {
        Some(DaemonReadiness::Ready(_)) => Ok(StartOutcome::Ready),
        Some(DaemonReadiness::Busy(holder)) => {
            child.wait().map_err(start_error)?;
            Ok(StartOutcome::Busy(holder))
        }
        Some(DaemonReadiness::Failed(problem)) => Err(problem.into()),
        None if child.wait().map_err(start_error)?.signal().is_some() => Ok(StartOutcome::Killed),
        None => Err(start_failed(&launcher.dirs)),
    }
}

fn daemon_command(launcher: &DaemonLauncher) -> Command {
    ostler_sys::cloexec::set_cloexec_on_all();
    let mut command = Command::new(super::run::executable());
    command
        .arg("__daemon")
        .arg("--state-dir")
        .arg(&launcher.dirs.state)
        .arg("--runtime-dir")
        .arg(&launcher.dirs.runtime)
        .current_dir("/");
    if let Some(config) = &launcher.config {
        command.arg("--config").arg(config);
    }
    for assignment in &launcher.assignments {
        command.arg("--set").arg(assignment);
    }
    for name in private_variables() {
        command.env_remove(name);
    }
    command
}

/// Variables that a daemon started on demand does not inherit from its starter.
fn private_variables() -> Vec<OsString> {
    let keys = CLIENT_KEYS
        .iter()
        .filter_map(|name| SettingKey::by_name(name));
    keys.flat_map(|key| key.variables)
        .chain([&EXECUTION_VARIABLE])
        .map(OsString::from)
        .collect()
}

fn open_log(dirs: &Dirs) -> Result<File, CommandError> {
    let path = dirs.log();
    open_log_file(&path).map_err(|error| {
        let shown = path.display();
        let message = format!("the daemon cannot be started: its log {shown}: {error}");
        CommandError::daemon(message).with_hint(format!(
            "{shown} is a regular file that you can write, or is not there: then it is made"
        ))
    })
}

fn open_log_file(path: &Path) -> io::Result<File> {
    const MODE: u32 = 0o600;
    if let Some(wrong) = WrongFileType::at(path) {
        return Err(io::Error::other(format!("it is {wrong}")));
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(MODE);
    let log = options.open(path)?;
    if log.metadata()?.len() > LOG_BYTES {
        log.set_len(0)?;
    }
    Ok(log)
}

/// Reads the daemon's message; none when it exited without one.
fn read_readiness(
    pipe: io::PipeReader,
    deadline: Instant,
) -> Result<Option<DaemonReadiness>, CommandError> {
    let line = read_line(pipe, deadline).map_err(|error| {
        CommandError::daemon(format!("the daemon does not become ready: {error}"))
    })?;
    Ok(serde_json::from_str(&line).ok())
}

fn read_line(pipe: io::PipeReader, deadline: Instant) -> io::Result<String> {
    let mut line = Vec::new();
    let mut pipe = pipe.take(READINESS_BYTES);
    let mut chunk = [0; 4096];
    while !line.ends_with(b"\n") {
        wait_readable(pipe.get_ref(), deadline)?;
        match pipe.read(&mut chunk)? {
            0 => break,
            read => line.extend_from_slice(&chunk[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn wait_readable(pipe: &io::PipeReader, deadline: Instant) -> io::Result<()> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(remaining).map_err(io::Error::other)?;
    let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
    match rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

fn start_timed_out(dirs: &Dirs, holder: Option<u32>) -> CommandError {
    let who = holder.map_or_else(|| "a daemon".to_owned(), |pid| format!("process {pid}"));
    let log = dirs.log();
    let seconds = START_TIMEOUT_MS / 1_000;
    CommandError::daemon(format!(
        "{who} holds {} and does not serve after {seconds} s",
        dirs.lock().display()
    ))
    .with_hint(format!(
        "its log is {}; where it is stopped, continue or end it",
        log.display()
    ))
}

fn starts_killed(dirs: &Dirs) -> CommandError {
    let count = MAX_KILLED + 1;
    CommandError::daemon(format!(
        "{count} daemons in a row were killed by a signal while they started"
    ))
    .with_hint(format!(
        "see the kernel's log for a lack of memory, and {}",
        dirs.log().display()
    ))
}

fn start_failed(dirs: &Dirs) -> CommandError {
    const LINES: usize = 3;
    let log = dirs.log();
    let text = fs::read(&log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
    CommandError::daemon(format!("the daemon ended while it started:\n  {last}"))
        .with_hint(format!("its log is {}", log.display()))
}
