//! One client, from its first byte to its last.

use ostler_engine::Engine;
use ostler_model::Caller;
use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use super::context::FrontContext;
use super::handler::Handler;

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
pub async fn serve<R, W>(
    engine: Engine,
    caller: Caller,
    front: FrontContext,
    reader: R,
    writer: W,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let calls = TaskTracker::new();
    let handler = Handler {
        engine,
        caller,
        front,
        calls: calls.clone(),
    };
    let ended = match handler.serve((reader, writer)).await {
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
