//! How any command reaches the daemon, starting it on demand.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_server::wire::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::lock;
use crate::config::Key;
use crate::error::CommandError;
use crate::paths::Places;
use crate::socket;

/// How long a daemon may take until it serves, in milliseconds; recovery of thousands of
/// executions is part of it.
const START_TIMEOUT_MS: u64 = 30_000;
/// The longest thing a starting daemon has to say.
const READINESS_BYTES: u64 = 64 * 1024;
/// A log larger than this begins anew with the next daemon.
const LOG_BYTES: u64 = 8 * 1024 * 1024;
/// Policy of a front travels in its hello; a daemon it starts serves others too.
const FRONT_KEYS: [&str; 3] = [
    "allowed_commands",
    "default_encoding",
    "retention.command_seconds",
];
/// Marks members of an execution; a daemon started from inside one is no member.
const EXECUTION_VARIABLE: &str = "OSTLER_EXECUTION";

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    places: Places,
    config: Option<PathBuf>,
}

/// What a starting daemon says on its standard output, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Readiness {
    /// It serves.
    Ready(u32),
    /// It cannot.
    Failed(Problem),
}

impl Launch {
    /// A daemon for these places, reading the same configuration file.
    pub(crate) const fn new(places: Places, config: Option<PathBuf>) -> Self {
        Self { places, config }
    }
}

/// Connects to the daemon's `socket`; where nobody listens, starts one with `launch` first.
/// Starters take turns, so that however many come at once, one daemon is started.
///
/// # Errors
/// When there is no daemon and none can be started; says why.
pub(crate) fn reach(socket: &Path, launch: Option<&Launch>) -> Result<UnixStream, CommandError> {
    match socket::connect(socket) {
        Ok(stream) => return Ok(stream),
        Err(error) if !socket::nobody_listens(&error) => return Err(unreachable(socket, &error)),
        Err(_) => {}
    }
    let Some(launch) = launch else {
        return Err(CommandError::daemon("no daemon is running")
            .with_hint("any command that needs one starts it, for example `ostler ps`"));
    };
    launch.places.prepare()?;
    let _turn = start_turn(&launch.places)?;
    if let Ok(stream) = socket::connect(socket) {
        return Ok(stream);
    }
    start(launch)?;
    socket::connect(socket).map_err(|error| unreachable(socket, &error))
}

/// The turn of one starter; `serve` takes it too while it starts.
///
/// # Errors
/// When the lock file cannot be made.
pub(crate) fn start_turn(places: &Places) -> Result<lock::Held, CommandError> {
    let path = places.runtime.join("start.lock");
    lock::hold(&path).map_err(|error| {
        CommandError::daemon(format!("{} cannot be locked: {error}", path.display()))
    })
}

fn unreachable(socket: &Path, error: &io::Error) -> CommandError {
    CommandError::daemon(format!("{} cannot be reached: {error}", socket.display()))
}

fn start(launch: &Launch) -> Result<(), CommandError> {
    let failed =
        |error: io::Error| CommandError::daemon(format!("the daemon cannot be started: {error}"));
    let (ours, theirs) = io::pipe().map_err(failed)?;
    let log = open_log(&launch.places).map_err(failed)?;
    // The daemon's parent ends soon; init reaps it.
    let _child = command(launch)
        .stdin(Stdio::null())
        .stdout(theirs)
        .stderr(log)
        .spawn()
        .map_err(failed)?;
    match readiness(ours)? {
        Some(Readiness::Ready(_)) => Ok(()),
        Some(Readiness::Failed(problem)) => Err(problem.into()),
        None => Err(silent(&launch.places)),
    }
}

fn command(launch: &Launch) -> Command {
    ostler_process::seal_descriptors();
    let mut command = Command::new(super::run::executable());
    command
        .arg("__daemon")
        .arg("--state-dir")
        .arg(&launch.places.state)
        .arg("--runtime-dir")
        .arg(&launch.places.runtime)
        .current_dir("/");
    if let Some(config) = &launch.config {
        command.arg("--config").arg(config);
    }
    for name in private_variables() {
        command.env_remove(name);
    }
    command
}

/// Variables a daemon started on demand does not take over from who happened to start it.
fn private_variables() -> Vec<OsString> {
    let keys = FRONT_KEYS.iter().filter_map(|name| Key::named(name));
    keys.flat_map(|key| key.variables)
        .chain([&EXECUTION_VARIABLE])
        .map(OsString::from)
        .collect()
}

fn open_log(places: &Places) -> io::Result<File> {
    const MODE: u32 = 0o600;
    let path = places.log();
    let too_large = fs::metadata(&path).is_ok_and(|meta| meta.len() > LOG_BYTES);
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(MODE);
    if too_large {
        fs::write(&path, b"")?;
    }
    options.open(path)
}

/// The daemon's one line; none when it ended without a word.
fn readiness(pipe: io::PipeReader) -> Result<Option<Readiness>, CommandError> {
    let line = read_line(pipe).map_err(|error| {
        CommandError::daemon(format!("the daemon does not become ready: {error}"))
    })?;
    Ok(serde_json::from_str(&line).ok())
}

fn read_line(pipe: io::PipeReader) -> io::Result<String> {
    let deadline = Instant::now() + Duration::from_millis(START_TIMEOUT_MS);
    let mut line = Vec::new();
    let mut pipe = pipe.take(READINESS_BYTES);
    let mut piece = [0; 4096];
    while !line.ends_with(b"\n") {
        wait_readable(pipe.get_ref(), deadline)?;
        match pipe.read(&mut piece)? {
            0 => break,
            read => line.extend_from_slice(&piece[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn wait_readable(pipe: &io::PipeReader, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
    let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
    match rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

fn silent(places: &Places) -> CommandError {
    const LINES: usize = 3;
    let log = places.log();
    let text = fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
    CommandError::daemon(format!("the daemon ended while it started:\n  {last}"))
        .with_hint(format!("its log is {}", log.display()))
}
