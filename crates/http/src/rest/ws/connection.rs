//! One WebSocket connection: the handshake, the close, and what both of its uses share.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::header::UPGRADE;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use ostler_interface::http::HttpProblem;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use crate::listen::{ConnectionPermit, LocalAddr};
use crate::rest::response::RestResult;
use crate::tokens::{TokenEnd, TokenValidity};
use crate::web::PAGE_SUBPROTOCOL;

/// The largest message from a client, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 64 * 1024;
/// Bytes buffered before they are written to a client.
const WRITE_BYTES: usize = 64 * 1024;
/// The most bytes buffered for a client: a repaint of a large screen and a page of output.
const WRITE_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// How long the closing handshake may take, in milliseconds.
const CLOSE_MS: u64 = 1_000;
/// A network client that sent nothing for this long is gone, in milliseconds: it missed two pings.
const SILENCE_MS: u64 = 75_000;
/// Interval of pings to a network client, in milliseconds; on the Unix socket the kernel reports
/// disconnects.
const PING_MS: u64 = 30_000;

/// The connection of a request, its token, and its upgrade to a WebSocket.
pub(in crate::rest) struct UpgradeRequest {
    permit: Option<ConnectionPermit>,
    is_remote: bool,
    validity: Option<TokenValidity>,
    is_requested: bool,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
}

/// The client of a connection.
pub(super) struct WsClient {
    pub(super) socket: WebSocket,
    /// How long its token is valid; none for one without.
    pub(super) validity: Option<TokenValidity>,
    /// Whether it is on the network, where a lost peer is found by pings.
    pub(super) is_remote: bool,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WsCloseReason {
    /// The session ended, and the client was notified.
    SessionEnded,
    /// The task ended, and the client was notified.
    TaskEnded,
    /// The daemon is shutting down.
    ShuttingDown,
    /// The client's token is not valid any more.
    TokenEnded(TokenEnd),
    /// The client is gone.
    Disconnected,
    /// The client sent nothing for too long.
    TimedOut,
    /// The client sent a message that is longer than allowed.
    MessageTooLarge,
    /// The client sent a text that is not UTF-8.
    InvalidText,
    /// The client sent something else that is not WebSocket.
    ProtocolError,
    /// The session cannot be read.
    ReadFailed,
}

impl<S: Send + Sync> FromRequestParts<S> for UpgradeRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self {
            permit: parts.extensions.get().cloned(),
            is_remote: parts.extensions.get::<LocalAddr>().is_some(),
            validity: parts.extensions.get().cloned(),
            is_requested: parts.headers.contains_key(UPGRADE),
            upgrade: WebSocketUpgrade::from_request_parts(parts, state).await,
        })
    }
}

impl UpgradeRequest {
    /// Whether the client requests an upgrade at all.
    pub(in crate::rest) const fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Whether a WebSocket is requested.
    ///
    /// # Errors
    /// When it is not: the status is 426.
    pub(super) fn check(&self) -> RestResult<()> {
        self.upgrade.as_ref().map(drop).map_err(upgrade_required)
    }

    /// Upgrades the connection, which `serve` then has. Until it returns, the connection is
    /// counted, and the listener waits for its end.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn accept<F: Future<Output = ()> + Send>(
        self,
        serve: impl FnOnce(WsClient) -> F + Send + 'static,
    ) -> RestResult<Response> {
        let Self {
            permit,
            is_remote,
            validity,
            upgrade,
            ..
        } = self;
        let upgrade = upgrade
            .map_err(|rejection| upgrade_required(&rejection))?
            .max_message_size(MESSAGE_BYTES)
            .max_frame_size(MESSAGE_BYTES)
            .write_buffer_size(WRITE_BYTES)
            .max_write_buffer_size(WRITE_LIMIT_BYTES)
            .protocols([PAGE_SUBPROTOCOL]);
        Ok(upgrade.on_upgrade(move |socket| async move {
            let _permit = permit;
            let client = WsClient {
                socket,
                validity,
                is_remote,
            };
            serve(client).await;
        }))
    }
}

fn upgrade_required(rejection: &WebSocketUpgradeRejection) -> HttpProblem {
    let message = format!("this route speaks WebSocket: {rejection}");
    HttpProblem::value(message).with_status(426)
}

/// Waits for the end of the token; without a token, forever.
pub(super) async fn token_ended(validity: Option<TokenValidity>) -> WsCloseReason {
    match validity {
        Some(validity) => WsCloseReason::TokenEnded(validity.ended().await),
        None => std::future::pending().await,
    }
}

/// How long a client may send nothing.
pub(super) fn idle_timeout(is_remote: bool) -> Option<Duration> {
    is_remote.then_some(Duration::from_millis(SILENCE_MS))
}

/// The client's next message.
pub(super) async fn next_message(
    stream: &mut SplitStream<WebSocket>,
    idle_timeout: Option<Duration>,
) -> Result<Message, WsCloseReason> {
    let next = match idle_timeout {
        Some(limit) => timeout(limit, stream.next())
            .await
            .map_err(|_| WsCloseReason::TimedOut)?,
        None => stream.next().await,
    };
    match next {
        Some(Ok(message)) => Ok(message),
        Some(Err(error)) => Err(reason_of_error(error)),
        None => Err(WsCloseReason::Disconnected),
    }
}

fn reason_of_error(error: axum::Error) -> WsCloseReason {
    match error.into_inner().downcast_ref::<WsError>() {
        Some(WsError::Capacity(_)) => WsCloseReason::MessageTooLarge,
        Some(WsError::Utf8(_)) => WsCloseReason::InvalidText,
        Some(WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => {
            WsCloseReason::Disconnected
        }
        Some(WsError::Protocol(_)) => WsCloseReason::ProtocolError,
        Some(_) | None => WsCloseReason::Disconnected,
    }
}

/// When the next ping to a network client is due.
pub(super) fn next_ping_time() -> Instant {
    Instant::now() + Duration::from_millis(PING_MS)
}

/// Waits for this time; without one, forever.
pub(super) async fn until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Closes the connection. A client that does not respond any more is not waited for.
pub(super) async fn close(sink: &mut SplitSink<WebSocket, Message>, reason: WsCloseReason) {
    let closing = sink.send(Message::Close(Some(close_frame(reason))));
    drop(timeout(Duration::from_millis(CLOSE_MS), closing).await);
}

fn close_frame(reason: WsCloseReason) -> CloseFrame {
    const TOO_LARGE: &str = "a message has at most 65536 bytes";
    const { assert!(MESSAGE_BYTES == 65_536) };
    let (code, reason) = match reason {
        WsCloseReason::SessionEnded => (close_code::NORMAL, "the session ended"),
        WsCloseReason::TaskEnded => (close_code::NORMAL, "the task ended"),
        WsCloseReason::ShuttingDown => (close_code::AWAY, "the daemon leaves"),
        WsCloseReason::TokenEnded(end) => (close_code::POLICY, end.as_str()),
        WsCloseReason::Disconnected => (close_code::NORMAL, ""),
        WsCloseReason::TimedOut => (close_code::POLICY, "nothing was heard for too long"),
        WsCloseReason::MessageTooLarge => (close_code::SIZE, TOO_LARGE),
        WsCloseReason::InvalidText => (close_code::INVALID, "a text is not UTF-8"),
        WsCloseReason::ProtocolError => (close_code::PROTOCOL, "a frame is no WebSocket frame"),
        WsCloseReason::ReadFailed => (close_code::ERROR, "the session cannot be read"),
    };
    CloseFrame {
        code,
        reason: reason.into(),
    }
}
