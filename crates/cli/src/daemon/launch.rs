//! How any command reaches the daemon, starting it on demand.

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

use ostler_server::wire::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::handover::SecretVariables;
use super::lock::{self, Tried};
use super::socket_watch::{Change, SocketWatch};
use super::whereabouts;
use crate::config::Key;
use crate::error::CommandError;
use crate::paths::Places;
use crate::socket;

/// How long a daemon may take until it serves, in milliseconds; recovery of thousands of
/// executions is part of it.
const START_TIMEOUT_MS: u64 = 30_000;
/// How long a starter waits for the one before it, in milliseconds. That one may be stopped;
/// two daemons that start at once are not two that serve.
const TURN_MS: u64 = 1_000;
/// Daemons that may be killed while they start before the caller is told.
const KILLED_MAX: u32 = 20;
/// How long a living daemon may take to listen again in a runtime directory that was made anew,
/// in milliseconds.
const LISTEN_AGAIN_MS: u64 = 1_500;
/// The lock of starters, in the runtime directory.
const START_LOCK: &str = "start.lock";
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
    secrets: SecretVariables,
}

/// What a starting daemon says on its standard output, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Readiness {
    /// It serves.
    Ready(u32),
    /// It leaves: another one has the lock, and this pid where it wrote it down.
    Busy(Option<u32>),
    /// It cannot.
    Failed(Problem),
}

impl Launch {
    /// A daemon for these places, reading the same configuration file, with these secrets.
    pub(crate) const fn new(
        places: Places,
        config: Option<PathBuf>,
        secrets: SecretVariables,
    ) -> Self {
        Self {
            places,
            config,
            secrets,
        }
    }
}

/// Connects to the daemon's `socket`; where nobody listens, starts one with `launch` first.
/// Starters take turns, so that however many come at once, one daemon is started; but whoever
/// has the turn or starts the daemon may be killed or stopped at any moment, so nobody waits
/// for more than the daemon itself.
///
/// # Errors
/// When there is no daemon and none can be started; says why.
pub(crate) fn reach(socket: &Path, launch: Option<&Launch>) -> Result<UnixStream, CommandError> {
    if let Some(stream) = connect(socket)? {
        return Ok(stream);
    }
    let Some(launch) = launch else {
        return Err(CommandError::daemon("no daemon is running")
            .with_hint("any command that needs one starts it, for example `ostler ps`"));
    };
    launch.places.prepare()?;
    let mut starting = Starting::new(launch);
    loop {
        // Watched before it is looked at, so that nothing is missed in between.
        let watch = SocketWatch::new(socket).map_err(|error| unreachable(socket, &error))?;
        if let Some(stream) = connect(socket)? {
            return Ok(stream);
        }
        starting.step(&watch)?;
    }
}

/// A connection; none where nobody listens.
fn connect(socket: &Path) -> Result<Option<UnixStream>, CommandError> {
    match socket::connect(socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if socket::nobody_listens(&error) => Ok(None),
        Err(error) => Err(unreachable(socket, &error)),
    }
}

fn unreachable(socket: &Path, error: &io::Error) -> CommandError {
    CommandError::daemon(format!("{} cannot be reached: {error}", socket.display()))
}

/// One caller's way to a daemon.
#[derive(Debug)]
struct Starting<'a> {
    launch: &'a Launch,
    /// When the caller gives up.
    deadline: Instant,
    /// Until when another starter's turn is respected.
    turn_until: Option<Instant>,
    /// Daemons that were killed while they started.
    killed: u32,
    /// Until when a living daemon may listen again.
    again_until: Option<Instant>,
}

/// What became of a daemon that was started.
#[derive(Debug)]
enum Started {
    /// It serves.
    Ready,
    /// Another one, with this pid, has the lock: it starts, serves or ends.
    Busy(Option<u32>),
    /// A signal ended it.
    Killed,
}

impl<'a> Starting<'a> {
    fn new(launch: &'a Launch) -> Self {
        Self {
            launch,
            deadline: Instant::now() + Duration::from_millis(START_TIMEOUT_MS),
            turn_until: None,
            killed: 0,
            again_until: None,
        }
    }

    /// Brings a daemon nearer: starts one, or waits for somebody else's. Nobody listened just
    /// now.
    fn step(&mut self, watch: &SocketWatch) -> Result<(), CommandError> {
        if let Some((pid, lost)) = whereabouts::out_of_reach(&self.launch.places) {
            // Its directory was made again just now: it listens there in a moment.
            let patience = Instant::now() + Duration::from_millis(LISTEN_AGAIN_MS);
            let until = *self.again_until.get_or_insert(patience);
            return match waited(watch.wait(Some(pid), until))? {
                Change::Something => Ok(()),
                Change::Nothing => Err(CommandError::daemon(lost)),
            };
        }
        let path = self.launch.places.runtime.join(START_LOCK);
        let turn = lock::try_hold(&path).map_err(|error| {
            CommandError::daemon(format!("{} cannot be locked: {error}", path.display()))
        })?;
        let now = Instant::now();
        if let Tried::Busy(starter) = turn {
            let patience = now + Duration::from_millis(TURN_MS);
            let until = *self.turn_until.get_or_insert(patience);
            if now < until {
                return waited(watch.wait(starter, until)).map(drop);
            }
            // It may be stopped. The daemons' own lock decides who serves.
        }
        let waits_for = match start(self.launch, self.deadline)? {
            Started::Ready => None,
            Started::Busy(pid) => Some(pid),
            Started::Killed if self.killed < KILLED_MAX => {
                self.killed += 1;
                None
            }
            Started::Killed => return Err(silent(&self.launch.places)),
        };
        let change = match waits_for {
            Some(pid) => waited(watch.wait(pid, self.deadline))?,
            None => Change::Something,
        };
        if change == Change::Nothing || Instant::now() >= self.deadline {
            return Err(stuck(&self.launch.places, waits_for.flatten()));
        }
        Ok(())
    }
}

fn waited(change: io::Result<Change>) -> Result<Change, CommandError> {
    change.map_err(|error| CommandError::daemon(format!("no wait for the daemon: {error}")))
}

fn start(launch: &Launch, deadline: Instant) -> Result<Started, CommandError> {
    let failed =
        |error: io::Error| CommandError::daemon(format!("the daemon cannot be started: {error}"));
    let (ours, theirs) = io::pipe().map_err(failed)?;
    let log = open_log(&launch.places).map_err(failed)?;
    // The daemon's parent ends soon; init reaps it.
    let mut child = command(launch)
        .stdin(launch.secrets.hand_over().map_err(failed)?)
        .stdout(theirs)
        .stderr(log)
        .spawn()
        .map_err(failed)?;
    match readiness(ours, deadline)? {
        Some(Readiness::Ready(_)) => Ok(Started::Ready),
        Some(Readiness::Busy(holder)) => {
            child.wait().map_err(failed)?;
            Ok(Started::Busy(holder))
        }
        Some(Readiness::Failed(problem)) => Err(problem.into()),
        None if child.wait().map_err(failed)?.signal().is_some() => Ok(Started::Killed),
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
fn readiness(pipe: io::PipeReader, deadline: Instant) -> Result<Option<Readiness>, CommandError> {
    let line = read_line(pipe, deadline).map_err(|error| {
        CommandError::daemon(format!("the daemon does not become ready: {error}"))
    })?;
    Ok(serde_json::from_str(&line).ok())
}

fn read_line(pipe: io::PipeReader, deadline: Instant) -> io::Result<String> {
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

fn stuck(places: &Places, holder: Option<u32>) -> CommandError {
    let who = holder.map_or_else(|| "a daemon".to_owned(), |pid| format!("process {pid}"));
    let log = places.log();
    let seconds = START_TIMEOUT_MS / 1_000;
    CommandError::daemon(format!(
        "{who} holds {} and does not serve after {seconds} s",
        places.lock().display()
    ))
    .with_hint(format!(
        "its log is {}; where it is stopped, continue or end it",
        log.display()
    ))
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
