//! What happens to interactions, over a WebSocket.

use futures_util::StreamExt as _;
use ostler_api::InteractionServerMessage;
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::http::{DaemonClient, connection_error};
use crate::error::CommandError;

/// The WebSocket of interactions.
const PATH: &str = "/api/v1/interactions/events";

/// A connection to the interactions of this user.
#[derive(Debug)]
pub(crate) struct InteractionSocket(WebSocketStream<UnixStream>);

impl DaemonClient {
    /// Connects to the interactions.
    ///
    /// # Errors
    /// As the daemon responds, or when the connection breaks.
    pub(crate) async fn connect_interactions(&self) -> Result<InteractionSocket, CommandError> {
        match self.connect_websocket(PATH).await {
            Ok(socket) => Ok(InteractionSocket(socket)),
            Err(error) => Err(self.handshake_error(PATH, error).await),
        }
    }
}

impl InteractionSocket {
    /// Receives the next message; unknown ones of newer daemons are ignored. Cancel safe.
    ///
    /// # Errors
    /// When the connection is closed.
    pub(crate) async fn next(&mut self) -> Result<InteractionServerMessage, CommandError> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                    Ok(message) => return Ok(message),
                    Err(error) => tracing::debug!(%error, %text, "not understood"),
                },
                Some(Ok(Message::Close(_))) | None => {
                    return Err(CommandError::Disconnected(
                        "the daemon closed it".to_owned(),
                    ));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(connection_error(&error)),
            }
        }
    }
}
