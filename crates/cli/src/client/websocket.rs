//! The terminal of a session over a WebSocket.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
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

/// Milliseconds that closing may take, with what is still to be sent and the daemon's close frame.
const CLOSE_MS: u64 = 1_000;
/// The most bytes of keys that wait to be sent.
const QUEUED_BYTES: usize = 4 * 1024 * 1024;

/// A connection to the terminal of a session. What is sent waits in a queue while the daemon does not
/// read on: a program that does not read its input never delays its user.
#[derive(Debug)]
pub(crate) struct TerminalSocket {
    socket: WebSocketStream<UnixStream>,
    queue: VecDeque<Message>,
    queued_bytes: usize,
    /// Whether nothing can be sent any more.
    is_closed: bool,
}

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
        let socket = self.connect_websocket(path).await?;
        Ok(TerminalSocket {
            socket,
            queue: VecDeque::new(),
            queued_bytes: 0,
            is_closed: false,
        })
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
    /// Receives the next message, and sends what waits. Cancel safe.
    ///
    /// # Errors
    /// When the connection is closed.
    pub(crate) async fn next(&mut self) -> Result<SocketEvent, CommandError> {
        loop {
            let message = poll_fn(|context| {
                // The end of the connection is that of its messages.
                let _sent = self.poll_send(context);
                self.socket.poll_next_unpin(context)
            });
            let message = match message.await {
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

    /// Whether more keys may be sent now.
    pub(crate) const fn has_room(&self) -> bool {
        self.queued_bytes < QUEUED_BYTES
    }

    /// Sends keys, at once or while messages are received; false when the connection is closed.
    /// Messages before its end are still to be received, so that is not an error yet.
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
        self.queued_bytes += message.len();
        self.queue.push_back(message);
        poll_fn(|context| {
            let _sent = self.poll_send(context);
            Poll::Ready(())
        })
        .await;
        !self.is_closed
    }

    /// Sends what waits, until the daemon does not read on; ready when all is sent.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.is_closed && !self.queue.is_empty() {
            let is_ready = ready!(self.socket.poll_ready_unpin(context)).is_ok();
            let message = self.queue.pop_front().filter(|_| is_ready);
            self.queued_bytes -= message.as_ref().map_or(0, Message::len);
            let sent = message.map(|message| self.socket.start_send_unpin(message));
            self.is_closed = !matches!(sent, Some(Ok(())));
        }
        if !self.is_closed {
            self.is_closed = ready!(self.socket.poll_flush_unpin(context)).is_err();
        }
        Poll::Ready(())
    }

    /// Closes the connection, and waits until the daemon has released what this client held.
    pub(crate) async fn close(mut self) {
        let closing = async {
            poll_fn(|context| self.poll_send(context)).await;
            if self.socket.close(None).await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        // The connection ends anyway.
        drop(timeout(Duration::from_millis(CLOSE_MS), closing).await);
    }
}

fn disconnected() -> CommandError {
    CommandError::Disconnected("the daemon closed it".to_owned())
}
