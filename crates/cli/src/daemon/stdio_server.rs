//! The stdio server: takes over the standard streams of `ostler mcp` and serves MCP on them.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use ostler_api::Problem;
use ostler_engine::error::OPEN_FILES_HINT;
use ostler_engine::{Engine, project_of};
use ostler_http::listen::{AcceptedSocket, Acceptor, ConnectionTerms};
use ostler_http::rest::RestState;
use ostler_interface::project_access::ProjectAccess;
use ostler_mcp::{ClientContext, ConnectedClient, McpConnection, McpState, ToolSet};
use ostler_model::ErrorCode;
use ostler_sys::open_files;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::idle_tracker::IdleTracker;
use super::stdio_sessions;
use crate::stdio_protocol::{
    self, CloseReason, DESCRIPTORS, HELLO_BYTES, HELLO_TIMEOUT_MS, HelloReply, PROTOCOL,
    StdioEvent, StdioHello,
};

const PIECE_BYTES: usize = 64 * 1024;

/// The shared state of all stdio connections.
#[derive(Debug, Clone)]
pub(crate) struct StdioServer {
    pub(crate) engine: Engine,
    pub(crate) mcp_state: McpState,
    pub(crate) tracker: TaskTracker,
    pub(crate) idle_tracker: IdleTracker,
    pub(crate) stop: CancellationToken,
    /// The state of REST, whatever the listener.
    pub(crate) rest: RestState,
}

/// A hello and the descriptors that came with it.
#[derive(Debug)]
struct HelloMessage {
    hello: StdioHello,
    input: OwnedFd,
    output: OwnedFd,
    /// The log of the connection, written by earlier daemons.
    log: OwnedFd,
}

impl StdioServer {
    /// Accepts stdio proxies until the daemon stops.
    pub(crate) async fn accept(self, listener: UnixListener) {
        let error = match Acceptor::stdio_proxies(listener) {
            Ok(acceptor) => match self.accept_all(&acceptor).await {
                Ok(()) => return,
                Err(error) => error,
            },
            Err(error) => error,
        };
        tracing::error!(error = %error, "fronts cannot be accepted any more");
    }

    async fn accept_all(&self, acceptor: &Acceptor) -> io::Result<()> {
        while let Some(connection) = self.stop.run_until_cancelled(acceptor.accept()).await {
            let AcceptedSocket { socket, terms } = connection?;
            let control = UnixStream::from_std(socket.into())?;
            // Counted from now on, so that no other component takes the descriptors that its
            // streams need.
            let reserved_files = open_files::ExpectedFds::new(DESCRIPTORS as u64);
            let server = self.clone();
            self.tracker.spawn(async move {
                match terms {
                    ConnectionTerms::Refused => server.reject(control, reserved_files).await,
                    ConnectionTerms::Unrestricted(_) | ConnectionTerms::SingleRequest(_) => {
                        server.handle(control, reserved_files).await;
                    }
                }
                open_files::notify_closed();
            });
        }
        Ok(())
    }

    /// Refuses a proxy that waited for descriptors.
    async fn reject(&self, mut control: UnixStream, reserved_files: open_files::ExpectedFds) {
        drop(reserved_files);
        let message = "the daemon may open no more files (RLIMIT_NOFILE), and a connection of \
                       an MCP client takes four";
        let hint = Some(OPEN_FILES_HINT.to_owned());
        let problem = Problem::new(ErrorCode::QuotaExceeded, message, hint);
        tracing::warn!(reason = problem.message, "a front was turned away");
        send_line(&mut control, &HelloReply::Error(problem)).await;
    }

    async fn handle(&self, mut control: UnixStream, reserved_files: open_files::ExpectedFds) {
        let _guard = self.idle_tracker.track();
        let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
        let received = tokio::time::timeout(limit, receive_hello(&mut control)).await;
        drop(reserved_files);
        let message = match received
            .unwrap_or_else(|_| Err(initialization_problem("no hello came in time")))
        {
            Ok(greeting) => greeting,
            Err(problem) => {
                tracing::warn!(reason = problem.message, "a front was turned away");
                return send_line(&mut control, &HelloReply::Error(problem)).await;
            }
        };
        if let Err(problem) = self.serve(&mut control, message).await {
            send_line(&mut control, &HelloReply::Error(problem)).await;
        }
    }

    async fn serve(&self, control: &mut UnixStream, message: HelloMessage) -> Result<(), Problem> {
        let HelloMessage {
            hello,
            input,
            output,
            log,
        } = message;
        let context = client_context(&hello)?;
        let stream_error =
            |error: io::Error| initialization_problem(&format!("a stream cannot be used: {error}"));
        let connection = McpConnection::open(input, output, log).map_err(stream_error)?;
        send_line(control, &HelloReply::Ok(true)).await;
        tracing::debug!(session = hello.session, pid = hello.pid, "a front came");

        let client = ConnectedClient {
            caller: stdio_sessions::caller_in_project(&hello.session, project_of_hello(&hello)),
            access: ProjectAccess::default(),
            context,
        };
        let connection_task = connection.serve(self.mcp_state.clone(), client, self.stop.clone());
        let close_reason = tokio::select! {
            result = connection_task => {
                if let Err(error) = result {
                    tracing::info!(session = hello.session, %error, "a client left");
                }
                if self.stop.is_cancelled() {
                    CloseReason::Shutdown
                } else {
                    CloseReason::Closed
                }
            }
            () = wait_closed(control) => CloseReason::Closed,
        };
        if close_reason == CloseReason::Closed && !hello.kept {
            stdio_sessions::end(&self.engine, &hello.session).await;
        }
        send_line(control, &StdioEvent::Bye(close_reason)).await;
        Ok(())
    }
}

/// Waits until the proxy has closed its connection.
async fn wait_closed(control: &mut UnixStream) {
    let mut discarded = [0; 64];
    // A proxy sends nothing after its hello; whatever arrives, it is alive.
    while matches!(control.read(&mut discarded).await, Ok(1..)) {}
}

async fn send_line<T: serde::Serialize>(control: &mut UnixStream, message: &T) {
    if let Ok(line) = stdio_protocol::encode_line(message) {
        // A proxy that exited needs no response.
        drop(control.write_all(&line).await);
    }
}

/// The project of a proxy: later sessions in it see what this one passes to it.
fn project_of_hello(hello: &StdioHello) -> String {
    let home = hello
        .env
        .iter()
        .find(|(name, _)| name.as_bytes() == b"HOME");
    project_of(hello.cwd.as_path(), home.map(|(_, home)| home.as_path()))
}

fn client_context(hello: &StdioHello) -> Result<ClientContext, Problem> {
    if hello.protocol != PROTOCOL {
        let client_protocol = hello.protocol;
        return Err(Problem::new(
            ErrorCode::Initialization,
            format!("this daemon speaks front protocol {PROTOCOL}, not {client_protocol}"),
            Some(
                "client and daemon are of different versions: `ostler shutdown`, then again"
                    .to_owned(),
            ),
        ));
    }
    if hello.session.is_empty() || (hello.kept && stdio_sessions::is_stdio_session(&hello.session))
    {
        return Err(Problem::value(format!(
            "'{}' cannot name a session",
            hello.session
        )));
    }
    let tools = tool_set(&hello.tools).map_err(|error| Problem::value(error.to_string()))?;
    Ok(ClientContext {
        cwd: hello.cwd.clone(),
        env: hello.env.clone(),
        tools,
        allowed: hello.policy.allowed_commands.clone(),
        encoding: hello.policy.default_encoding.clone(),
        retention: hello.policy.retention_seconds.map(Duration::from_secs),
        isolation: hello.policy.isolation,
    })
}

/// The tools of these profiles; none is the default.
///
/// # Errors
/// When a name is not a profile.
pub(crate) fn tool_set(profiles: &[String]) -> Result<ToolSet, ostler_mcp::UnknownProfile> {
    if profiles.is_empty() {
        return Ok(ToolSet::default());
    }
    profiles.join(",").parse()
}

fn initialization_problem(message: &str) -> Problem {
    Problem::new(ErrorCode::Initialization, message, None)
}

/// Receives one hello with its streams, and checks the peer's credentials.
async fn receive_hello(control: &mut UnixStream) -> Result<HelloMessage, Problem> {
    let read_error =
        |error: io::Error| initialization_problem(&format!("the hello cannot be read: {error}"));
    check_peer(control)?;
    let (mut bytes, fds) = receive_first(control).await.map_err(read_error)?;
    while !bytes.ends_with(b"\n") {
        if bytes.len() > HELLO_BYTES {
            return Err(initialization_problem("the hello is too long"));
        }
        bytes.reserve(PIECE_BYTES);
        if control.read_buf(&mut bytes).await.map_err(read_error)? == 0 {
            return Err(initialization_problem("the hello broke off"));
        }
    }
    let hello = serde_json::from_slice(&bytes).map_err(|error| {
        initialization_problem(&format!("the hello is not understood: {error}"))
    })?;
    let [input, output, log] = <[OwnedFd; DESCRIPTORS]>::try_from(fds).map_err(|fds| {
        initialization_problem(&format!(
            "{} descriptors came, not {DESCRIPTORS}",
            fds.len()
        ))
    })?;
    Ok(HelloMessage {
        hello,
        input,
        output,
        log,
    })
}

fn check_peer(control: &UnixStream) -> Result<(), Problem> {
    let peer = rustix::net::sockopt::socket_peercred(control.as_fd())
        .map_err(|error| initialization_problem(&format!("who asks cannot be told: {error}")))?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    let message = format!(
        "this daemon belongs to another user than {}",
        peer.uid.as_raw()
    );
    Err(Problem::new(ErrorCode::Permission, message, None))
}

/// Receives the first bytes of a hello, and the descriptors attached to them (SCM_RIGHTS).
async fn receive_first(control: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
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
