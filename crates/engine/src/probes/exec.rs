//! Probes that run a command.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::redact::Redactor;
use ostler_model::ByteString;
use ostler_sys::pidfd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::readiness::ProbeOutcome;
use crate::secret_texts::ProbeSecrets;

/// The most characters of a command's output that are reported.
const OUTPUT_CHARS: usize = 200;
/// The bytes of it that are kept until then: enough for that many characters.
const OUTPUT_BYTES: usize = OUTPUT_CHARS * 4;
/// Read at once.
const READ_BYTES: usize = 4 * 1024;
/// The bytes that are read after the command's end: the capacity of a pipe.
const REST_BYTES: usize = 64 * 1024;
/// How long the end of a killed command is awaited.
const REAP_MS: u64 = 200;

/// The context of a probe command.
#[derive(Debug, Clone)]
pub(crate) struct ExecContext {
    /// The service's working directory.
    pub(crate) cwd: ByteString,
    /// The service's whole environment.
    pub(crate) env: Vec<(ByteString, ByteString)>,
    /// The service's secrets, which are in that environment.
    pub(crate) secrets: Arc<ProbeSecrets>,
}

/// Runs the command in its own process group, which is killed with its end, with the timeout, or
/// with the future.
pub(super) async fn run(
    argv: Vec<ByteString>,
    context: ExecContext,
    limit: Duration,
) -> ProbeOutcome {
    let name = argv
        .first()
        .map(|program| context.secrets.redact(&program.to_string_lossy()));
    let secrets = Arc::clone(&context.secrets);
    // The task's result holds the group: dropped with the future, it ends it.
    let spawned = tokio::task::spawn_blocking(move || ProbeGroup::spawn(&argv, &context)).await;
    let outcome = match spawned {
        Ok(Ok(group)) => timeout(limit, group.finish(&secrets)).await,
        Ok(Err(error)) => Ok(Err(error)),
        Err(_) => Ok(Err(io::ErrorKind::Interrupted.into())),
    };
    match outcome {
        Ok(Ok((status, output))) => ProbeOutcome::Exec {
            code: exit_code(status),
            output,
        },
        Ok(Err(error)) => ProbeOutcome::Failed {
            detail: format!(
                "cannot run `{}`: {}",
                name.unwrap_or_default(),
                error.kind()
            ),
        },
        Err(_) => ProbeOutcome::Failed {
            detail: format!("no exit within {} s", limit.as_secs()),
        },
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(by_signal)
}

/// A process group and its leader, not yet reaped: until then the pid cannot be reused.
#[derive(Debug)]
struct ProbeGroup {
    leader: Child,
    pid: Pid,
    pidfd: OwnedFd,
    output: OwnedFd,
    reaped: bool,
}

impl ProbeGroup {
    fn spawn(argv: &[ByteString], context: &ExecContext) -> io::Result<Self> {
        let os = |text: &ByteString| OsStr::from_bytes(text.as_bytes()).to_owned();
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (output, writer) = io::pipe()?;
        let mut leader = Command::new(os(program))
            .args(arguments.iter().map(os))
            .env_clear()
            .envs(context.env.iter().map(|(key, value)| (os(key), os(value))))
            .current_dir(context.cwd.as_path())
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&leader);
        ostler_sys::open_files::restore_limit(pid);
        match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(pidfd) => Ok(Self {
                leader,
                pid,
                pidfd,
                output: output.into(),
                reaped: false,
            }),
            Err(error) => {
                let _all_there_is = kill_process_group(pid, Signal::KILL);
                leader.wait()?;
                Err(error.into())
            }
        }
    }

    /// Waits for the leader, kills the rest of the group, and returns the result.
    async fn finish(mut self, secrets: &ProbeSecrets) -> io::Result<(ExitStatus, String)> {
        let mut tail = ProbeOutput::new(secrets);
        let mut output = Receiver::from_owned_fd(self.output.try_clone()?)?;
        tokio::select! {
            end = pidfd::wait(self.pidfd.try_clone()?) => end?,
            () = tail.follow(&mut output) => pidfd::wait(self.pidfd.try_clone()?).await?,
        }
        let _others = kill_process_group(self.pid, Signal::KILL);
        tail.read_rest(&output);
        self.reaped = true;
        Ok((self.leader.wait()?, tail.into_text()))
    }
}

impl Drop for ProbeGroup {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        let _gone = kill_process_group(self.pid, Signal::KILL);
        let limit = Duration::from_millis(REAP_MS);
        let _in_time = pidfd::has_ended_within(self.pidfd.as_fd(), limit);
        let _reaped = self.leader.try_wait();
    }
}

/// The end of the output, redacted before it is cut.
#[derive(Debug)]
struct ProbeOutput<'a> {
    secrets: &'a ProbeSecrets,
    redactor: Redactor,
    tail: Vec<u8>,
}

impl<'a> ProbeOutput<'a> {
    fn new(secrets: &'a ProbeSecrets) -> Self {
        Self {
            secrets,
            redactor: Redactor::default(),
            tail: Vec::new(),
        }
    }

    /// Reads all output to its end.
    async fn follow(&mut self, output: &mut Receiver) {
        let mut piece = [0; READ_BYTES];
        while let Ok(read @ 1..) = output.read(&mut piece).await {
            self.push(&piece[..read]);
        }
    }

    /// Reads the available output.
    fn read_rest(&mut self, output: &Receiver) {
        let mut piece = [0; READ_BYTES];
        for _ in 0..REST_BYTES / READ_BYTES {
            match output.try_read(&mut piece) {
                Ok(read @ 1..) => self.push(&piece[..read]),
                Ok(0) | Err(_) => break,
            }
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let clean = match self.secrets.finder() {
            Some(finder) => self.redactor.push(finder, piece),
            None => piece,
        };
        keep_end(&mut self.tail, clean);
    }

    fn into_text(mut self) -> String {
        if let Some(finder) = self.secrets.finder() {
            keep_end(&mut self.tail, self.redactor.flush(finder));
        }
        let text = String::from_utf8_lossy(&self.tail);
        let text = text.trim_end();
        let cut = text.char_indices().rev().nth(OUTPUT_CHARS - 1);
        text[cut.map_or(0, |(at, _)| at)..].to_owned()
    }
}

fn keep_end(tail: &mut Vec<u8>, piece: &[u8]) {
    tail.extend_from_slice(piece);
    tail.drain(..tail.len().saturating_sub(OUTPUT_BYTES));
}
