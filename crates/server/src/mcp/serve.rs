//! One client, from its first byte to its last.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::context::Client;
use super::desk::Desk;
use super::handler::Handler;
use super::leases::{Line, Witnessed};

/// Why a client could not be served to its end.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The client never came to an understanding with us.
    #[error("the client's first messages made no sense: {0}")]
    Handshake(String),
    /// The task that served it broke off.
    #[error("serving the client broke off: {0}")]
    Broken(String),
}

/// Serves one client until its stream closes. Calls under way are then given the library's
/// drain time and cancelled (F7); when this returns, none is left. The session itself is the
/// caller's to end.
///
/// # Errors
/// When the handshake fails or the serving task breaks off; a client that leaves is no error.
pub async fn serve<R, W>(desk: Desk, client: Client, reader: R, writer: W) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(reader, writer);
    // Boxed: the compiler cannot prove of the bare future that it may change threads.
    let serving: BoxFuture<'static, Result<(), ServeError>> =
        Box::pin(over(desk, client, transport, CancellationToken::new()));
    serving.await
}

/// As [`serve`], over any transport, at most until `closed`.
pub(super) async fn over<T>(
    desk: Desk,
    client: Client,
    transport: T,
    closed: CancellationToken,
) -> Result<(), ServeError>
where
    T: Transport<RoleServer> + 'static,
{
    let (line, client) = (Line::default(), Arc::new(client));
    let shared = (desk.clone(), Arc::clone(&client));
    let transport = Witnessed::new(transport, line.clone(), shared);
    let calls = line.calls.clone();
    let handler = Handler::of_stream(desk, client, line);
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
