//! Makes an execution look like a child of ours: its output on our streams, our input and
//! signals to it, its exit code ours.

use std::io::{self, IsTerminal as _, Read as _};
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use ostler_model::status::ProcessStatus;
use ostler_model::{Cursor, ErrorCode, Signal, StreamName, Text};
use ostler_server::wire::{InfoBody, StdinBody, StopBody, TakenBody};
use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::JoinSet;

use super::follow::{Event, Piece, Tail, exit_code};
use super::{ids, interrupts, kill, refused, stop, walls};
use crate::client::{Attempts, Body, Client};
use crate::error::{CommandError, Outcome, output_failed};
use crate::loss::{Missing, Wanted};

/// Input up to this size goes with the request; more is fed while the command runs.
const GIVEN_BYTES: u64 = 256 * 1024;
/// Bytes of input fed at once.
const INPUT_BYTES: usize = 64 * 1024;
/// How long to wait before input that was not taken is offered again, in milliseconds; it
/// doubles up to the second one.
const OFFER_MS: (u64, u64) = (5, 500);
/// What a shell adds to the number of the signal that ended a command.
const SIGNAL_EXIT: u8 = 128;

/// Our standard input.
#[derive(Debug)]
pub(crate) enum Stdin {
    /// Nothing, or nobody: closed, or `/dev/null`.
    Empty,
    /// A small file, read whole.
    Given(Vec<u8>),
    /// A terminal, a pipe, a socket or a large file.
    Stream,
}

impl Stdin {
    /// What is on our descriptor 0.
    pub(crate) fn open() -> Self {
        let Ok(stat) = fstat(rustix::stdio::stdin()) else {
            return Self::Empty;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice if !io::stdin().is_terminal() => Self::Empty,
            FileType::RegularFile => small_file(u64::try_from(stat.st_size).unwrap_or(u64::MAX)),
            FileType::Directory => Self::Empty,
            FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Fifo
            | FileType::Socket
            | FileType::Symlink
            | FileType::Unknown => Self::Stream,
        }
    }

    /// What the daemon is asked for.
    pub(crate) fn request(&self) -> StdinBody {
        match self {
            Self::Empty => StdinBody::Empty,
            Self::Given(bytes) => StdinBody::Given(Text::from(bytes.clone())),
            Self::Stream => StdinBody::Open,
        }
    }
}

fn small_file(size: u64) -> Stdin {
    if size > GIVEN_BYTES {
        return Stdin::Stream;
    }
    let mut bytes = Vec::new();
    match io::stdin().lock().take(GIVEN_BYTES).read_to_end(&mut bytes) {
        Ok(_) => Stdin::Given(bytes),
        Err(_) => Stdin::Empty,
    }
}

/// Signals that are meant for the command. Caught before it starts, so that none is lost.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: unix::Signal,
    others: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// When the system does not let us.
    pub(crate) fn catch() -> Result<Self, CommandError> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::quit(),
            SignalKind::hangup(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let caught = kinds.into_iter().map(|kind| {
            let told = Signal::try_from(kind.as_raw_value()).map_err(io::Error::other)?;
            Ok((told, signal(kind)?))
        });
        let others: io::Result<Vec<_>> = caught.collect();
        let both = others.and_then(|others| Ok((signal(SignalKind::interrupt())?, others)));
        let (interrupt, others) = both.map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })?;
        Ok(Self { interrupt, others })
    }

    /// Waits for a signal that means to leave: the exit code then. While a command is being
    /// started there is nothing yet that it could be passed on to.
    pub(crate) async fn leave(&mut self) -> u8 {
        let leaves = [
            SignalKind::terminate(),
            SignalKind::quit(),
            SignalKind::hangup(),
        ];
        let leaves = leaves.map(|kind| kind.as_raw_value());
        let others = self.others.iter_mut();
        let others = others.filter(|(told, _)| leaves.contains(&told.number()));
        let others = others.map(|(told, caught)| {
            let told = *told;
            Box::pin(async move {
                let _told = caught.recv().await;
                told
            })
        });
        let told = tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            (told, ..) = futures_util::future::select_all(others) => told,
        };
        SIGNAL_EXIT + u8::try_from(told.number()).unwrap_or_default()
    }
}

/// Follows an execution to its end.
///
/// # Errors
/// When it cannot be followed, or our output cannot be written.
pub(crate) async fn follow(
    client: Client,
    info: &InfoBody,
    stdin: Stdin,
    signals: Signals,
) -> Outcome {
    let mut helpers = JoinSet::new();
    for (told, caught) in signals.others {
        helpers.spawn(pass_signal(client.clone(), info.id.clone(), told, caught));
    }
    let interrupts = interrupts::carry_out(client.clone(), info.id.clone(), signals.interrupt);
    if matches!(stdin, Stdin::Stream) {
        let (client, id) = (client.clone(), info.id.clone());
        // Input that is not taken is the command's business.
        helpers.spawn(async move { drop(feed(client, id, true).await) });
    }
    // A reader of our output that stands still must not keep anybody from leaving.
    tokio::select! {
        outcome = show_all(client, info) => outcome,
        outcome = interrupts => outcome,
    }
}

async fn show_all(client: Client, info: &InfoBody) -> Outcome {
    let query = "&follow=true&lossless=true".to_owned();
    let mut tail = Tail::new(client.clone(), &info.id, query, Cursor::START);
    let mut missing = Missing::default();
    loop {
        match tail.next().await? {
            Event::End(info) => {
                refused::tell(&client, &info).await;
                return ended(&info, missing, Wanted::Everything);
            }
            Event::Output(Piece::Gap(gap)) => missing.tell(gap),
            Event::Output(Piece::Bytes(stream, bytes)) => {
                if let Err(error) = show(stream, &bytes).await {
                    return Err(unread(&client, info, error).await);
                }
            }
        }
    }
}

/// The exit code of what ended, where all of its output that was wanted was passed on.
///
/// # Errors
/// When some of it is missing.
pub(crate) fn ended(info: &InfoBody, missing: Missing, wanted: Wanted) -> Outcome {
    let code = end(info);
    match missing.check(wanted, info) {
        Ok(()) => Ok(code),
        Err(error) => Err(error.with_hint(format!("the command itself ended with {code}"))),
    }
}

/// The exit code of what ended; says what it cannot say.
pub(crate) fn end(info: &InfoBody) -> u8 {
    let untold = matches!(
        info.status,
        ProcessStatus::Terminated | ProcessStatus::Error
    );
    if let Some(message) = info.error_message.as_deref().filter(|_| untold) {
        crate::tell(&format!("{}: {message}", info.id));
    }
    if info.leftovers > 0 {
        let count = info.leftovers;
        crate::tell(&format!(
            "{}: {count} processes it left behind were ended",
            info.id
        ));
    }
    walls::tell_end(info);
    exit_code(info)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command's own output, as it is"
)]
async fn show(stream: StreamName, bytes: &[u8]) -> Result<(), CommandError> {
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

/// Nobody reads its output any more: a child of a shell would get SIGPIPE.
pub(crate) async fn unread(client: &Client, info: &InfoBody, error: CommandError) -> CommandError {
    let body = StopBody {
        reason: Some("nobody reads its output any more".to_owned()),
        ..StopBody::default()
    };
    // It may have ended by itself meanwhile.
    drop(stop::stop(client, &info.id, &body).await);
    error
}

async fn pass_signal(client: Client, id: String, told: Signal, mut caught: unix::Signal) {
    while caught.recv().await.is_some() {
        // It may have ended by itself meanwhile.
        drop(kill::send(&client, &id, told).await);
    }
}

/// Feeds our standard input to the command until either ends. With `close`, the end of ours is
/// the end of its own; a terminal gets its end-of-file character.
///
/// # Errors
/// When the daemon does not take it.
pub(crate) async fn feed(client: Client, id: String, close: bool) -> Result<(), CommandError> {
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; INPUT_BYTES];
    loop {
        let read = stdin.read(&mut buffer).await.unwrap_or(0);
        let bytes = Bytes::copy_from_slice(&buffer[..read]);
        let last = read == 0;
        if !last || close {
            offer(&client, &id, bytes, last).await?;
        }
        if last {
            return Ok(());
        }
    }
}

/// Offers bytes until all were taken.
async fn offer(
    client: &Client,
    id: &str,
    mut bytes: Bytes,
    last: bool,
) -> Result<(), CommandError> {
    let path = ids::path(id, if last { "/input?close=true" } else { "/input" });
    let mut pause = OFFER_MS.0;
    let mut attempts = Attempts::new();
    loop {
        let body = Body::Octets(bytes.clone());
        let answer: TakenBody = match client.call(Method::POST, &path, body).await {
            Err(error @ CommandError::Disconnected(_)) => {
                attempts.next(error)?;
                if !bytes.is_empty() {
                    // Offered again, it might arrive twice.
                    crate::tell(&format!(
                        "the daemon died with {} bytes of input on their way; {id} may have got \
                         them or not",
                        bytes.len()
                    ));
                }
                if !last {
                    return Ok(());
                }
                bytes = Bytes::new();
                continue;
            }
            answer => answer?,
        };
        let taken = usize::try_from(answer.taken).unwrap_or(usize::MAX);
        if taken >= bytes.len() {
            return Ok(());
        }
        if taken > 0 {
            pause = OFFER_MS.0;
        }
        bytes = bytes.slice(taken..);
        let until = tokio::time::Instant::now() + Duration::from_millis(pause);
        tokio::time::sleep_until(until).await;
        pause = (pause * 2).min(OFFER_MS.1);
    }
}
