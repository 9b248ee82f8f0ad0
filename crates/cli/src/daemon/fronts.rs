//! Takes over the standard streams of `ostler mcp` and serves MCP on them.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use ostler_engine::Engine;
use ostler_model::ErrorCode;
use ostler_server::mcp::{self, Client, Desk, FrontContext, ToolSet};
use ostler_server::wire::Problem;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::presence::Presence;
use super::sessions;
use super::splice::{ClientInput, ClientOutput};
use super::streams;
use crate::hello::{self, Bye, HELLO_BYTES, HELLO_TIMEOUT_MS, Hello, Note, PROTOCOL, Reply};

/// Standard input and standard output.
const STREAMS: usize = 2;
/// Notes that wait for a front to read them.
const NOTES: usize = 16;
const PIECE_BYTES: usize = 64 * 1024;

/// What every front is served with.
#[derive(Debug, Clone)]
pub(crate) struct Fronts {
    pub(crate) engine: Engine,
    pub(crate) desk: Desk,
    pub(crate) tracker: TaskTracker,
    pub(crate) presence: Presence,
    pub(crate) stop: CancellationToken,
}

/// A hello and the streams that came with it.
#[derive(Debug)]
struct Greeting {
    hello: Hello,
    input: OwnedFd,
    output: OwnedFd,
}

impl Fronts {
    /// Accepts fronts until the daemon stops.
    pub(crate) async fn accept(self, listener: UnixListener) {
        while let Some(accepted) = self.stop.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => {
                    let fronts = self.clone();
                    self.tracker
                        .spawn(async move { fronts.attend(stream).await });
                }
                Err(error) => {
                    tracing::error!(%error, "fronts cannot be accepted any more");
                    return;
                }
            }
        }
    }

    async fn attend(&self, mut control: UnixStream) {
        let _guest = self.presence.enter();
        let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
        let greeted = tokio::time::timeout(limit, greet(&mut control)).await;
        let greeting = match greeted.unwrap_or_else(|_| Err(refusal("no hello came in time"))) {
            Ok(greeting) => greeting,
            Err(problem) => {
                tracing::warn!(reason = problem.message, "a front was turned away");
                return say(&mut control, &Reply::Error(problem)).await;
            }
        };
        if let Err(problem) = self.serve(&mut control, greeting).await {
            say(&mut control, &Reply::Error(problem)).await;
        }
    }

    async fn serve(&self, control: &mut UnixStream, greeting: Greeting) -> Result<(), Problem> {
        let Greeting {
            hello,
            input,
            output,
        } = greeting;
        let context = context(&hello)?;
        let (notes, mut noted) = mpsc::channel(NOTES);
        let unusable = |error: io::Error| refusal(&format!("a stream cannot be used: {error}"));
        let resume = hello.resume.as_ref();
        let reader = streams::input(input).map_err(unusable)?;
        let reader = ClientInput::new(reader, resume, notes.clone());
        let writer = streams::output(output).map_err(unusable)?;
        let writer = ClientOutput::new(writer, resume, notes);
        say(control, &Reply::Ok(true)).await;
        tracing::debug!(
            session = hello.session,
            pid = hello.pid,
            resumed = resume.is_some(),
            "a front came"
        );

        let client = Client {
            caller: sessions::caller(&hello.session),
            front: context,
        };
        let serving = mcp::serve(self.desk.clone(), client, reader, writer);
        let bye = tokio::select! {
            ended = serving => {
                if let Err(error) = ended {
                    tracing::info!(session = hello.session, %error, "a client left");
                }
                Bye::Closed
            }
            () = converse(control, &mut noted) => Bye::Closed,
            () = self.stop.cancelled() => Bye::Shutdown,
        };
        if bye == Bye::Closed && !hello.kept {
            sessions::end(&self.engine, &hello.session).await;
        }
        say(control, &Note::Bye(bye)).await;
        Ok(())
    }
}

/// Passes notes on until the front is gone.
async fn converse(control: &mut UnixStream, notes: &mut mpsc::Receiver<Note>) {
    let (mut reader, mut writer) = control.split();
    let mut scrap = [0; 64];
    loop {
        tokio::select! {
            // A front has nothing to say after its hello; whatever comes, it is alive.
            read = reader.read(&mut scrap) => if !matches!(read, Ok(1..)) { return },
            Some(note) = notes.recv() => {
                let sent = match hello::line(&note) {
                    Ok(line) => writer.write_all(&line).await,
                    Err(error) => Err(error.into()),
                };
                if sent.is_err() {
                    return;
                }
            }
        }
    }
}

async fn say<T: serde::Serialize>(control: &mut UnixStream, message: &T) {
    if let Ok(line) = hello::line(message) {
        // A front that is gone needs no answer.
        drop(control.write_all(&line).await);
    }
}

fn context(hello: &Hello) -> Result<FrontContext, Problem> {
    if hello.protocol != PROTOCOL {
        let theirs = hello.protocol;
        return Err(Problem::new(
            ErrorCode::Initialization,
            format!("this daemon speaks front protocol {PROTOCOL}, not {theirs}"),
            Some(
                "client and daemon are of different versions: `ostler shutdown`, then again"
                    .to_owned(),
            ),
        ));
    }
    if hello.session.is_empty() || (hello.kept && sessions::is_front_session(&hello.session)) {
        return Err(Problem::value(format!(
            "'{}' cannot name a session",
            hello.session
        )));
    }
    let tools = tool_set(&hello.tools).map_err(|error| Problem::value(error.to_string()))?;
    Ok(FrontContext {
        cwd: hello.cwd.clone(),
        env: hello.env.clone(),
        tools,
        allowed: hello.policy.allowed_commands.clone(),
        encoding: hello.policy.default_encoding.clone(),
        retention: hello.policy.retention_seconds.map(Duration::from_secs),
        isolation: hello.policy.isolation,
    })
}

/// The tools these words stand for; none stands for the default.
///
/// # Errors
/// When one of them is no profile.
pub(crate) fn tool_set(words: &[String]) -> Result<ToolSet, mcp::UnknownProfile> {
    if words.is_empty() {
        return Ok(ToolSet::default());
    }
    words.join(",").parse()
}

fn refusal(message: &str) -> Problem {
    Problem::new(ErrorCode::Initialization, message, None)
}

/// Reads one hello with its streams, and checks who says it.
async fn greet(control: &mut UnixStream) -> Result<Greeting, Problem> {
    let broken = |error: io::Error| refusal(&format!("the hello cannot be read: {error}"));
    check_peer(control)?;
    let (mut bytes, fds) = first_piece(control).await.map_err(broken)?;
    while !bytes.ends_with(b"\n") {
        if bytes.len() > HELLO_BYTES {
            return Err(refusal("the hello is too long"));
        }
        bytes.reserve(PIECE_BYTES);
        if control.read_buf(&mut bytes).await.map_err(broken)? == 0 {
            return Err(refusal("the hello broke off"));
        }
    }
    let hello = serde_json::from_slice(&bytes)
        .map_err(|error| refusal(&format!("the hello is not understood: {error}")))?;
    let [input, output] = <[OwnedFd; STREAMS]>::try_from(fds)
        .map_err(|fds| refusal(&format!("{} streams came, not {STREAMS}", fds.len())))?;
    Ok(Greeting {
        hello,
        input,
        output,
    })
}

fn check_peer(control: &UnixStream) -> Result<(), Problem> {
    let peer = rustix::net::sockopt::socket_peercred(control.as_fd())
        .map_err(|error| refusal(&format!("who asks cannot be told: {error}")))?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    let message = format!(
        "this daemon belongs to another user than {}",
        peer.uid.as_raw()
    );
    Err(Problem::new(ErrorCode::Permission, message, None))
}

/// The first bytes of a hello, and the descriptors that ride on them.
async fn first_piece(control: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; PIECE_BYTES];
    let mut fds = Vec::new();
    let receive = || receive(control, &mut bytes, &mut fds);
    let count = control.async_io(Interest::READABLE, receive).await?;
    bytes.truncate(count);
    Ok((bytes, fds))
}

fn receive(control: &UnixStream, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(bytes)];
    let received = recvmsg(
        control,
        &mut pieces,
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(received.bytes)
}
