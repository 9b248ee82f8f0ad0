//! Takes over the standard streams of `ostler mcp` and serves MCP on them.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use ostler_engine::error::OPEN_FILES_HINT;
use ostler_engine::{Engine, project_of};
use ostler_model::ErrorCode;
use ostler_process::open_files;
use ostler_server::listen::{Accepted, Acceptor, Terms};
use ostler_server::mcp::{self, Client, Connection, Desk, FrontContext, ToolSet};
use ostler_server::wire::Problem;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::presence::Presence;
use super::sessions;
use crate::hello::{
    self, Bye, DESCRIPTORS, HELLO_BYTES, HELLO_TIMEOUT_MS, Hello, Note, PROTOCOL, Reply,
};

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

/// A hello and the descriptors that came with it.
#[derive(Debug)]
struct Greeting {
    hello: Hello,
    input: OwnedFd,
    output: OwnedFd,
    /// What earlier daemons noted of the connection.
    log: OwnedFd,
}

impl Fronts {
    /// Accepts fronts until the daemon stops.
    pub(crate) async fn accept(self, listener: UnixListener) {
        let failed = match Acceptor::fronts(listener) {
            Ok(acceptor) => match self.accept_all(&acceptor).await {
                Ok(()) => return,
                Err(error) => error,
            },
            Err(error) => error,
        };
        tracing::error!(error = %failed, "fronts cannot be accepted any more");
    }

    async fn accept_all(&self, acceptor: &Acceptor) -> io::Result<()> {
        while let Some(accepted) = self.stop.run_until_cancelled(acceptor.accept()).await {
            let Accepted { socket, terms } = accepted?;
            let control = UnixStream::from_std(socket.into())?;
            // Counted from now on, so that nobody else takes what its streams need.
            let streams = open_files::Claim::new(DESCRIPTORS as u64);
            let fronts = self.clone();
            self.tracker.spawn(async move {
                match terms {
                    Terms::Refused => fronts.turn_away(control, streams).await,
                    Terms::Room(_) | Terms::InTurn(_) => fronts.attend(control, streams).await,
                }
                open_files::closed();
            });
        }
        Ok(())
    }

    /// Tells a front that waited for descriptors that there are none.
    async fn turn_away(&self, mut control: UnixStream, streams: open_files::Claim) {
        drop(streams);
        let message = "the daemon may open no more files (RLIMIT_NOFILE), and a connection of \
                       an MCP client takes four";
        let hint = Some(OPEN_FILES_HINT.to_owned());
        let problem = Problem::new(ErrorCode::QuotaExceeded, message, hint);
        tracing::warn!(reason = problem.message, "a front was turned away");
        say(&mut control, &Reply::Error(problem)).await;
    }

    async fn attend(&self, mut control: UnixStream, streams: open_files::Claim) {
        let _guest = self.presence.enter();
        let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
        let greeted = tokio::time::timeout(limit, greet(&mut control)).await;
        drop(streams);
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
            log,
        } = greeting;
        let context = context(&hello)?;
        let unusable = |error: io::Error| refusal(&format!("a stream cannot be used: {error}"));
        let connection = Connection::open(input, output, log).map_err(unusable)?;
        say(control, &Reply::Ok(true)).await;
        tracing::debug!(session = hello.session, pid = hello.pid, "a front came");

        let client = Client {
            caller: sessions::caller_in(&hello.session, project(&hello)),
            front: context,
        };
        let serving = connection.serve(self.desk.clone(), client, self.stop.clone());
        let bye = tokio::select! {
            ended = serving => {
                if let Err(error) = ended {
                    tracing::info!(session = hello.session, %error, "a client left");
                }
                if self.stop.is_cancelled() {
                    Bye::Shutdown
                } else {
                    Bye::Closed
                }
            }
            () = until_gone(control) => Bye::Closed,
        };
        if bye == Bye::Closed && !hello.kept {
            sessions::end(&self.engine, &hello.session).await;
        }
        say(control, &Note::Bye(bye)).await;
        Ok(())
    }
}

/// Until the front has closed its connection.
async fn until_gone(control: &mut UnixStream) {
    let mut scrap = [0; 64];
    // A front has nothing to say after its hello; whatever comes, it is alive.
    while matches!(control.read(&mut scrap).await, Ok(1..)) {}
}

async fn say<T: serde::Serialize>(control: &mut UnixStream, message: &T) {
    if let Ok(line) = hello::line(message) {
        // A front that is gone needs no answer.
        drop(control.write_all(&line).await);
    }
}

/// The project of a front: what it keeps is seen by later sessions of it.
fn project(hello: &Hello) -> String {
    let home = hello
        .env
        .iter()
        .find(|(name, _)| name.as_bytes() == b"HOME");
    project_of(hello.cwd.as_path(), home.map(|(_, home)| home.as_path()))
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
    let [input, output, log] = <[OwnedFd; DESCRIPTORS]>::try_from(fds).map_err(|fds| {
        refusal(&format!(
            "{} descriptors came, not {DESCRIPTORS}",
            fds.len()
        ))
    })?;
    Ok(Greeting {
        hello,
        input,
        output,
        log,
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
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
