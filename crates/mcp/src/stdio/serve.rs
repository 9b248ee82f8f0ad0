//! Serves one client, from its first byte to its last.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::endpoint::{StdioSink, StdioSource};
use super::replay;
use super::shared_state::StdioShared;
use super::shutdown;
use super::transport::{StdioTransport, StreamTokens};
use crate::client::ConnectedClient;
use crate::connection_log::ConnectionLog;
use crate::handler::McpHandler;
use crate::pending_deliveries::{DeliveryTransport, StreamState};
use crate::state::McpState;

/// Why serving a client failed.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The handshake failed.
    #[error("the client's first messages made no sense: {0}")]
    Handshake(String),
    /// The serving task failed.
    #[error("serving the client broke off: {0}")]
    Broken(String),
}

/// Serves one client until its stream closes. Calls under way then have a second, after which they
/// are answered as cancelled; when this returns, none is left. The caller ends the session.
///
/// # Errors
/// When the handshake or the serving task fails; a client that disconnects is no error.
pub async fn serve<R, W>(
    mcp_state: McpState,
    client: ConnectedClient,
    reader: R,
    writer: W,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let source = StdioSource::Stream(Box::new(reader));
    let shared = Arc::new(StdioShared::new(
        ConnectionLog::in_memory(),
        StdioSink::from_stream(writer),
    ));
    // Boxed: the compiler cannot prove that the bare future is `Send`.
    let serving: BoxFuture<'static, Result<(), ServeError>> =
        Box::pin(serve_lines(mcp_state, client, source, shared));
    serving.await
}

/// A client's connection that outlives the process that serves it.
#[derive(Debug)]
pub struct McpConnection {
    pub(super) source: StdioSource,
    pub(super) shared: Arc<StdioShared>,
}

impl McpConnection {
    /// Takes over a client's input and output, pipes or sockets, and the log of what earlier
    /// daemons did with them: an empty file that can be written at any offset (a memfd), or one
    /// that an earlier daemon wrote. No other process may use them any more.
    ///
    /// # Errors
    /// When one of them cannot be used, or the file has other content.
    pub fn open(input: OwnedFd, output: OwnedFd, log: OwnedFd) -> io::Result<Self> {
        let (log, unsent) = ConnectionLog::open(log)?;
        let sink = StdioSink::from_descriptor(output, unsent)?;
        let shared = Arc::new(StdioShared::new(log, sink));
        let source = StdioSource::from_descriptor(input)?;
        Ok(Self { source, shared })
    }

    /// As [`serve`]. What an earlier daemon had not answered is carried out first. Once `stop` is
    /// cancelled, calls under way are answered with their present state, and the commands they
    /// started continue; this then returns when the engine shuts down.
    ///
    /// # Errors
    /// As [`serve`].
    pub async fn serve(
        self,
        mcp_state: McpState,
        client: ConnectedClient,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let Self { source, shared } = self;
        let (engine, caller) = (mcp_state.engine().clone(), client.clone());
        let serving: BoxFuture<'static, Result<(), ServeError>> =
            Box::pin(serve_lines(mcp_state, client, source, Arc::clone(&shared)));
        tokio::select! {
            ended = serving => ended,
            () = async {
                stop.cancelled().await;
                shutdown::answer_open_requests(&engine, &caller, &shared).await;
                // Calls that end before it would end what they started.
                engine.closing().await;
            } => Ok(()),
        }
    }
}

async fn serve_lines(
    mcp_state: McpState,
    client: ConnectedClient,
    source: StdioSource,
    shared: Arc<StdioShared>,
) -> Result<(), ServeError> {
    let stream = StreamState::default();
    let closed = CancellationToken::new();
    let tokens = StreamTokens {
        input_closed: stream.input_closed.clone(),
        closed: closed.clone(),
    };
    let mut transport = StdioTransport::new(source, Arc::clone(&shared), tokens);
    replay::queue_replay(&mut transport, &shared);
    serve_transport(mcp_state, client, transport, stream, closed).await
}

/// Serves one client over any transport, until the transport is closed.
pub(crate) async fn serve_transport<T>(
    mcp_state: McpState,
    client: ConnectedClient,
    transport: T,
    stream: StreamState,
    closed: CancellationToken,
) -> Result<(), ServeError>
where
    T: Transport<RoleServer> + 'static,
{
    let client = Arc::new(client);
    let transport = DeliveryTransport::new(
        transport,
        stream.clone(),
        mcp_state.clone(),
        Arc::clone(&client),
    );
    let calls = stream.calls.clone();
    let handler = McpHandler::of_stream(mcp_state, client, stream);
    let ended = match handler.serve_with_ct(transport, closed).await {
        Ok(service) => service.waiting().await,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(ServeError::Handshake(error.to_string())),
    };
    calls.close();
    calls.wait().await;
    match ended {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Broken(error.to_string())),
        Ok(_) => Ok(()),
    }
}
