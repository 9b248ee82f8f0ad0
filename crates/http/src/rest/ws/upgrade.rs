//! The WebSocket handshake, and the lifecycle of one connection.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use ostler_api::{TerminalHello, TerminalServerMessage};
use ostler_engine::Error;
use ostler_model::Cursor;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::receiver::WsReceiver;
use super::sender::{WsSender, WsSentState};
use super::session::{PendingLeaseRequests, WsSession};
use crate::listen::{ConnectionPermit, LocalAddr};
use crate::rest::caller::RequestCaller;
use crate::rest::extract::SessionPathId;
use crate::rest::query::QueryString;
use crate::rest::response::RestResult;
use crate::rest::state::RestState;
use crate::tokens::{TokenEnd, TokenValidity};
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The largest message from a client, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 64 * 1024;
/// Bytes buffered before they are written to a client.
const WRITE_BYTES: usize = 64 * 1024;
/// The most bytes buffered for a client: a repaint of a large screen and a page of output.
const WRITE_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// Capacity of the channel between the two halves.
const SENDER_COMMANDS: usize = 16;
/// How long the closing handshake may take, in milliseconds.
const CLOSE_MS: u64 = 1_000;

const ATTACH: &[Parameter] = &[
    Parameter::optional(
        "offset",
        ParameterKind::Integer(0, i64::MAX),
        "Begin with the output from this offset on instead of the screen",
    ),
    Parameter::optional(
        "whole",
        ParameterKind::Flag,
        "Send all output that is kept, however far behind the client is",
    )
    .with_default_flag(false),
];

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WsCloseReason {
    /// The session ended, and the client was notified.
    SessionEnded,
    /// The daemon is shutting down.
    ShuttingDown,
    /// The client's token is not valid any more.
    TokenEnded(TokenEnd),
    /// The client is gone.
    Disconnected,
    /// The client sent nothing for too long.
    TimedOut,
    /// The session cannot be read.
    ReadFailed,
}

/// The connection of a request, its token, and its upgrade to a WebSocket.
type UpgradeRequest = (
    Option<Extension<ConnectionPermit>>,
    Option<Extension<LocalAddr>>,
    Option<Extension<TokenValidity>>,
    Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
);

/// `GET /api/v1/executions/{id}/terminal`.
pub(in crate::rest) async fn attach(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    query_string: QueryString,
    (permit, local_addr, validity, upgrade): UpgradeRequest,
) -> RestResult<Response> {
    let arguments = query_string.check(ATTACH)?;
    let upgrade = upgrade.map_err(|rejection| upgrade_required(&rejection))?;
    let id = state
        .engine
        .info(&caller, &id)
        .map_err(Error::for_session)?
        .id
        .to_string();
    let session = WsSession { state, caller, id };
    let initial_state = WsInitialState::of(&session, arguments.count("offset")).await?;
    let send_everything = arguments.flag("whole");
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES)
        .max_frame_size(MESSAGE_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_write_buffer_size(WRITE_LIMIT_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        // While it exists, the connection is counted, and the listener waits for its end.
        let _permit = permit;
        let client = WsClient {
            socket,
            validity: validity.map(|Extension(validity)| validity),
            is_remote: local_addr.is_some(),
        };
        serve(client, session, initial_state, send_everything).await;
    }))
}

fn upgrade_required(rejection: &WebSocketUpgradeRejection) -> HttpProblem {
    let message = format!("this route speaks WebSocket: {rejection}");
    HttpProblem::value(message).with_status(426)
}

/// The first message to a client.
#[derive(Debug)]
struct WsInitialState {
    hello: TerminalHello,
    paint: Option<Vec<u8>>,
    sent: WsSentState,
}

impl WsInitialState {
    async fn of(session: &WsSession, offset: Option<u64>) -> RestResult<Self> {
        let engine = &session.state.engine;
        let view = engine.screen(&session.caller, &session.id);
        let view = session.state.unless_shutting_down(view).await??;
        let (paint, offset) = match offset {
            Some(offset) => (None, offset.min(view.offset)),
            None => {
                let repaint = engine.repaint(&session.caller, &session.id);
                let (paint, checkpoint) = session.state.unless_shutting_down(repaint).await??;
                (Some(paint), checkpoint.offset)
            }
        };
        let (size, holder) = (session.size()?, session.holder()?);
        let info = engine.info(&session.caller, &session.id)?;
        Ok(Self {
            hello: TerminalHello {
                id: info.id.short(),
                size,
                offset,
                alternate: view.alternate,
                title: view.title,
                holder: holder.as_ref().map(|holder| holder.name.clone()),
            },
            paint,
            sent: WsSentState {
                size,
                holder,
                yours: false,
            },
        })
    }
}

/// The other end of a connection.
struct WsClient {
    socket: WebSocket,
    /// How long its token is valid; none for one without.
    validity: Option<TokenValidity>,
    is_remote: bool,
}

/// Serves one connection, from the first message to the close.
async fn serve(client: WsClient, session: WsSession, initial_state: WsInitialState, whole: bool) {
    let WsClient {
        socket,
        validity,
        is_remote: remote,
    } = client;
    let token_ended = async {
        match validity {
            Some(validity) => validity.ended().await,
            None => std::future::pending().await,
        }
    };
    let (mut sink, stream) = socket.split();
    let (commands, command_queue) = mpsc::channel(SENDER_COMMANDS);
    let shutdown = session.state.shutdown.clone();
    let close_reason = {
        let pending = PendingLeaseRequests::default();
        let mut receiver =
            WsReceiver::new(session.clone(), stream, commands, pending.clone(), remote);
        let sending = async {
            let from = Cursor {
                offset: initial_state.hello.offset,
                event: 0,
            };
            let hello = TerminalServerMessage::Hello(initial_state.hello);
            let sent = initial_state.sent;
            let sender = WsSender::open(&session, &mut sink, from, sent, pending, whole, remote);
            match sender {
                Ok(mut sender) => sender.run(hello, initial_state.paint, command_queue).await,
                Err(_) => WsCloseReason::ReadFailed,
            }
        };
        let close_reason = tokio::select! {
            biased;
            () = shutdown.cancelled() => WsCloseReason::ShuttingDown,
            end = token_ended => WsCloseReason::TokenEnded(end),
            reason = receiver.run() => reason,
            reason = sending => reason,
        };
        if close_reason != WsCloseReason::ShuttingDown {
            receiver.release_lease().await;
        }
        close_reason
    };
    let closing = sink.send(Message::Close(Some(close_frame(close_reason))));
    // A client that does not respond any more is not waited for.
    drop(timeout(Duration::from_millis(CLOSE_MS), closing).await);
}

fn close_frame(reason: WsCloseReason) -> CloseFrame {
    let (code, reason) = match reason {
        WsCloseReason::SessionEnded => (close_code::NORMAL, "the session ended"),
        WsCloseReason::ShuttingDown => (close_code::AWAY, "the daemon leaves"),
        WsCloseReason::TokenEnded(end) => (close_code::POLICY, end.as_str()),
        WsCloseReason::Disconnected => (close_code::NORMAL, ""),
        WsCloseReason::TimedOut => (close_code::POLICY, "nothing was heard for too long"),
        WsCloseReason::ReadFailed => (close_code::ERROR, "the session cannot be read"),
    };
    CloseFrame {
        code,
        reason: reason.into(),
    }
}
