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
use super::{ids, kill, stop, walls};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome, output_failed};

/// Input up to this size goes with the request; more is fed while the command runs.
const GIVEN_BYTES: u64 = 256 * 1024;
/// Bytes of input fed at once.
const INPUT_BYTES: usize = 64 * 1024;
/// How long to wait before input that was not taken is offered again, in milliseconds; it
/// doubles up to the second one.
const OFFER_MS: (u64, u64) = (5, 500);
/// Times an interrupt is passed on before the person is told how to stop it.
const PATIENCE: u32 = 3;

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
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// When the system does not let us.
    pub(crate) fn catch() -> Result<Self, CommandError> {
        let kinds = [
            SignalKind::interrupt(),
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
        let caught: io::Result<Vec<_>> = caught.collect();
        caught.map(Self).map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
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
    for (told, caught) in signals.0 {
        helpers.spawn(pass_signal(client.clone(), info.id.clone(), told, caught));
    }
    if matches!(stdin, Stdin::Stream) {
        let (client, id) = (client.clone(), info.id.clone());
        // Input that is not taken is the command's business.
        helpers.spawn(async move { drop(feed(client, id).await) });
    }
    let query = "&follow=true".to_owned();
    let mut tail = Tail::new(client.clone(), &info.id, query, Cursor::START);
    loop {
        match tail.next().await? {
            Event::End(info) => return Ok(end(&info)),
            Event::Output(piece) => {
                if let Err(error) = show(piece).await {
                    return Err(unread(&client, info, error).await);
                }
            }
        }
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

async fn show(piece: Piece) -> Result<(), CommandError> {
    let written = match piece {
        Piece::Bytes(StreamName::Stderr, bytes) => write(tokio::io::stderr(), &bytes).await,
        Piece::Bytes(StreamName::Stdout | StreamName::Pty, bytes) => {
            write(tokio::io::stdout(), &bytes).await
        }
        Piece::Bytes(StreamName::Stdin, _) => Ok(()),
        Piece::Gap(gap) => {
            crate::tell(&format!("{} bytes of output are gone", gap.to - gap.from));
            Ok(())
        }
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
    let mut times = 0;
    while caught.recv().await.is_some() {
        // It may have ended by itself meanwhile.
        drop(kill::send(&client, &id, told).await);
        times += 1;
        if times == PATIENCE && told == Signal::INT {
            crate::tell(&format!(
                "it does not end; `ostler stop --force {id}` ends it"
            ));
        }
    }
}

/// Feeds our standard input to the command until either ends.
///
/// # Errors
/// When the daemon does not take it.
pub(crate) async fn feed(client: Client, id: String) -> Result<(), CommandError> {
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; INPUT_BYTES];
    loop {
        let read = stdin.read(&mut buffer).await.unwrap_or(0);
        let bytes = Bytes::copy_from_slice(&buffer[..read]);
        let last = read == 0;
        offer(&client, &id, bytes, last).await?;
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
    loop {
        let body = Body::Octets(bytes.clone());
        let answer: TakenBody = client.call(Method::POST, &path, body).await?;
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
