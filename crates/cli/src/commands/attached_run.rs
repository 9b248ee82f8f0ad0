//! Runs an execution as if it were a child process: its output on standard output and error,
//! standard input and signals passed on, its exit code returned.

use std::io::{self, IsTerminal as _, Read as _};

use ostler_api::{ExecutionBody, StdinBody, StopBody};
use ostler_model::{ByteString, Cursor, ErrorCode, Signal, StreamName};
use rustix::fs::{FileType, fstat};
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::JoinSet;

use super::output_tail::{OutputPiece, OutputTail, TailEvent, TailQuery};
use super::suspend_handler::SuspendSignals;
use super::{interrupt_handler, kill, refused_hosts, stop};
use crate::client::DaemonClient;
use crate::error::{CommandError, CommandResult, output_failed};
use crate::executions::end::output_exit_code;
use crate::executions::stdin::{self, feed_stdin};
use crate::missing_output::{LossScope, MissingOutput};

/// Input up to this many bytes is sent with the request; more is sent while the command runs.
const INLINE_BYTES: u64 = 256 * 1024;
/// What a shell adds to a signal number for the exit status.
const SIGNAL_EXIT: u8 = 128;

/// The kind of standard input.
#[derive(Debug)]
pub(crate) enum StdinMode {
    /// Empty: closed, or `/dev/null`.
    Empty,
    /// A small file, read completely.
    Bytes(Vec<u8>),
    /// A terminal, a pipe, a socket or a large file.
    Stream,
}

impl StdinMode {
    /// Inspects descriptor 0.
    pub(crate) fn open() -> Self {
        let Ok(stat) = fstat(rustix::stdio::stdin()) else {
            return Self::Empty;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice if !io::stdin().is_terminal() => Self::Empty,
            // Reading would stop this process, as the shell has it for jobs in the background.
            FileType::CharacterDevice if is_in_background() => Self::Empty,
            FileType::RegularFile => small_file(u64::try_from(stat.st_size).unwrap_or(u64::MAX)),
            FileType::Directory => {
                crate::print_note(&stdin::unreadable_note(&rustix::io::Errno::ISDIR.into()));
                Self::Empty
            }
            FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Fifo
            | FileType::Socket
            | FileType::Symlink
            | FileType::Unknown => Self::Stream,
        }
    }

    /// The request's field for standard input.
    pub(crate) fn to_body(&self) -> StdinBody {
        match self {
            Self::Empty => StdinBody::Empty,
            Self::Bytes(bytes) => StdinBody::Given(ByteString::from(bytes.clone())),
            Self::Stream => StdinBody::Open,
        }
    }
}

/// Whether another process group has the terminal of standard input.
fn is_in_background() -> bool {
    let foreground = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
    foreground.is_ok_and(|group| group != rustix::process::getpgrp())
}

fn small_file(size: u64) -> StdinMode {
    if size > INLINE_BYTES {
        return StdinMode::Stream;
    }
    let mut bytes = Vec::new();
    match io::stdin()
        .lock()
        .take(INLINE_BYTES)
        .read_to_end(&mut bytes)
    {
        Ok(_) => StdinMode::Bytes(bytes),
        Err(error) => {
            crate::print_note(&stdin::unreadable_note(&error));
            StdinMode::Empty
        }
    }
}

/// Signals to be forwarded to the command. Caught before it starts, so that none is lost.
#[derive(Debug)]
pub(crate) struct ForwardedSignals {
    interrupt: unix::Signal,
    forwarded: Vec<(Signal, unix::Signal)>,
}

impl ForwardedSignals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn install() -> Result<Self, CommandError> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::quit(),
            SignalKind::hangup(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let streams = kinds.into_iter().map(|kind| {
            let signal_number = Signal::try_from(kind.as_raw_value()).map_err(io::Error::other)?;
            Ok((signal_number, signal(kind)?))
        });
        let others: io::Result<Vec<_>> = streams.collect();
        let installed = others.and_then(|forwarded| {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                forwarded,
            })
        });
        installed.map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
    }

    /// Waits for a signal that requests an exit; returns its exit code. While a command is being
    /// started, there is nothing to forward signals to yet.
    pub(crate) async fn wait_for_exit(&mut self) -> u8 {
        let exit_kinds = [
            SignalKind::terminate(),
            SignalKind::quit(),
            SignalKind::hangup(),
        ];
        let leaves = exit_kinds.map(|kind| kind.as_raw_value());
        let others = self.forwarded.iter_mut();
        let others = others.filter(|(signal, _)| leaves.contains(&signal.number()));
        let others = others.map(|(signal, caught)| {
            let signal = *signal;
            Box::pin(async move {
                let _signal = caught.recv().await;
                signal
            })
        });
        let signal = tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            (signal, ..) = futures_util::future::select_all(others) => signal,
        };
        SIGNAL_EXIT + u8::try_from(signal.number()).unwrap_or_default()
    }
}

/// Follows an execution to its end.
///
/// # Errors
/// When it cannot be followed, or standard output cannot be written.
pub(crate) async fn run_attached(
    client: DaemonClient,
    info: &ExecutionBody,
    stdin: StdinMode,
    signals: ForwardedSignals,
    suspend: Option<SuspendSignals>,
) -> CommandResult {
    let mut tasks = JoinSet::new();
    for (signal, caught) in signals.forwarded {
        tasks.spawn(pass_signal(client.clone(), info.id.clone(), signal, caught));
    }
    if let Some(suspend) = suspend {
        tasks.spawn(suspend.follow(client.clone(), info.id.clone()));
    }
    let interrupts =
        interrupt_handler::handle_interrupts(client.clone(), info.id.clone(), signals.interrupt);
    if matches!(stdin, StdinMode::Stream) {
        let (client, id) = (client.clone(), info.id.clone());
        // Whether input is read is up to the command.
        tasks.spawn(async move { drop(feed_stdin(client, id, true).await) });
    }
    // A blocked reader of standard output must not prevent an exit.
    tokio::select! {
        outcome = print_output(client, info) => outcome,
        outcome = interrupts => outcome,
    }
}

async fn print_output(client: DaemonClient, info: &ExecutionBody) -> CommandResult {
    let query = TailQuery {
        follow: true,
        lossless: true,
        ..TailQuery::default()
    };
    let mut output_tail = OutputTail::new(client.clone(), &info.id, query, Cursor::START);
    let mut missing_output = MissingOutput::default();
    loop {
        match output_tail.next().await? {
            TailEvent::End(info) => {
                refused_hosts::report(&client, &info).await;
                return output_exit_code(&info, missing_output, LossScope::All);
            }
            TailEvent::Output(OutputPiece::Gap(gap)) => missing_output.report_gap(gap),
            TailEvent::Output(OutputPiece::Bytes(stream, bytes)) => {
                if let Err(error) = write_output(stream, &bytes).await {
                    return Err(stop_unread(&client, info, error).await);
                }
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command's own output, as it is"
)]
async fn write_output(stream: StreamName, bytes: &[u8]) -> Result<(), CommandError> {
    let written = match stream {
        StreamName::Stderr => write(tokio::io::stderr(), bytes).await,
        StreamName::Stdout | StreamName::Pty => write(tokio::io::stdout(), bytes).await,
        StreamName::Stdin => Ok(()),
    };
    written.map_err(|error| output_failed(&error))
}

async fn write(mut stream: impl tokio::io::AsyncWrite + Unpin, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Stops an execution whose output is no longer read: a child of a shell would get SIGPIPE.
pub(crate) async fn stop_unread(
    client: &DaemonClient,
    info: &ExecutionBody,
    error: CommandError,
) -> CommandError {
    let body = StopBody {
        reason: Some("nobody reads its output any more".to_owned()),
        ..StopBody::default()
    };
    // It may have ended by itself meanwhile.
    drop(stop::stop(client, &info.id, &body).await);
    error
}

async fn pass_signal(client: DaemonClient, id: String, signal: Signal, mut stream: unix::Signal) {
    while stream.recv().await.is_some() {
        // It may have ended by itself meanwhile.
        drop(kill::send(&client, &id, signal).await);
    }
}
