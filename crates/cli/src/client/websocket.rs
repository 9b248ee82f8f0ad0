//! The terminal of a session over a WebSocket.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::Method;
use ostler_api::{TerminalClientMessage, TerminalServerMessage};
use ostler_model::ErrorCode;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::http::{DaemonClient, RequestBody, connection_error, error_from_response};
use crate::error::CommandError;

/// Milliseconds to wait for the daemon's close frame.
const CLOSE_MS: u64 = 1_000;

/// A connection to the terminal of a session.
#[derive(Debug)]
pub(crate) struct TerminalSocket(WebSocketStream<UnixStream>);

#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// Output, or a repaint of the screen.
    Bytes(Bytes),
    /// A message about the session.
    Message(TerminalServerMessage),
}

impl DaemonClient {
    /// Connects to the terminal at `path`, relative to that of executions.
    ///
    /// # Errors
    /// As the daemon responds, or when the connection breaks.
    pub(crate) async fn connect_terminal(
        &self,
        path: &str,
    ) -> Result<TerminalSocket, CommandError> {
        self.connect_websocket(path).await.map(TerminalSocket)
    }

    /// Connects to the WebSocket at `path`.
    ///
    /// # Errors
    /// As the daemon responds, or when the connection breaks.
    pub(super) async fn connect_websocket(
        &self,
        path: &str,
    ) -> Result<WebSocketStream<UnixStream>, CommandError> {
        let stream = self.connect().await?;
        match client_async(format!("ws://ostler{path}"), stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => {
                let (parts, body) = answer.into_parts();
                Err(error_from_response(parts.status, &body.unwrap_or_default()))
            }
            Err(error) => Err(connection_error(&error)),
        }
    }

    /// The reason why the WebSocket at `path` was refused: the response to a handshake may lack its
    /// body, that to an ordinary request never does.
    pub(crate) async fn handshake_error(&self, path: &str, error: CommandError) -> CommandError {
        if error.code() != Some(ErrorCode::Internal) {
            return error;
        }
        let result = self.call_bytes(Method::GET, path, RequestBody::None).await;
        result.err().unwrap_or(error)
    }
}

impl TerminalSocket {
    /// Receives the next message. Cancel safe.
    ///
    /// # Errors
    /// When the connection is closed.
    pub(crate) async fn next(&mut self) -> Result<SocketEvent, CommandError> {
        loop {
            let message = match self.0.next().await {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Err(connection_error(&error)),
                None => return Err(disconnected()),
            };
            match message {
                Message::Binary(bytes) => return Ok(SocketEvent::Bytes(bytes)),
                // Messages of newer daemons that are unknown are ignored.
                Message::Text(text) => match serde_json::from_str(&text) {
                    Ok(message) => return Ok(SocketEvent::Message(message)),
                    Err(error) => tracing::debug!(%error, %text, "not understood"),
                },
                Message::Close(_) => return Err(disconnected()),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Sends keys; false when the connection is closed. Messages before its end are still to be
    /// received, so that is not an error yet.
    pub(crate) async fn send_keys(&mut self, keys: Vec<u8>) -> bool {
        self.send(Message::Binary(keys.into())).await
    }

    /// Sends a message, as [`TerminalSocket::send_keys`].
    pub(crate) async fn send_message(&mut self, message: &TerminalClientMessage) -> bool {
        match serde_json::to_string(message) {
            Ok(text) => self.send(Message::Text(text.into())).await,
            Err(_) => false,
        }
    }

    async fn send(&mut self, message: Message) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Closes the connection, and waits until the daemon has released what this client held.
    pub(crate) async fn close(mut self) {
        let closing = async {
            if self.0.close(None).await.is_ok() {
                while let Some(Ok(_)) = self.0.next().await {}
            }
        };
        // The connection ends anyway.
        drop(timeout(Duration::from_millis(CLOSE_MS), closing).await);
    }
}

fn disconnected() -> CommandError {
    CommandError::Disconnected("the daemon closed it".to_owned())
}
