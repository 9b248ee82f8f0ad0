//! The terminal of a session over a WebSocket, from the handshake to the close.

use axum::extract::State;
use axum::response::Response;
use futures_util::StreamExt as _;
use ostler_api::{TerminalHello, TerminalServerMessage};
use ostler_engine::Error;
use ostler_model::Cursor;
use tokio::sync::mpsc;

use super::connection::{UpgradeRequest, WsClient, WsCloseReason, close, token_ended};
use super::receiver::WsReceiver;
use super::sender::{WsSender, WsSentState};
use super::session::{PendingLeaseRequests, WsSession};
use crate::rest::caller::RequestCaller;
use crate::rest::extract::SessionPathId;
use crate::rest::query::QueryString;
use crate::rest::response::RestResult;
use crate::rest::state::RestState;
use ostler_interface::params::{Parameter, ParameterKind};

/// Capacity of the channel between the two halves.
const SENDER_COMMANDS: usize = 16;

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

/// `GET /api/v1/executions/{id}/terminal`: the terminal of a session over a WebSocket. Text frames
/// are `TerminalServerMessage` and `TerminalClientMessage`, binary ones output and keys.
pub(in crate::rest) async fn attach(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    SessionPathId(id): SessionPathId,
    query_string: QueryString,
    upgrade: UpgradeRequest,
) -> RestResult<Response> {
    let arguments = query_string.check(ATTACH)?;
    upgrade.check()?;
    let id = state
        .engine
        .info(&caller, &id)
        .map_err(Error::for_session)?
        .id
        .to_string();
    let session = WsSession { state, caller, id };
    let initial_state = WsInitialState::of(&session, arguments.count("offset")).await?;
    let send_everything = arguments.flag("whole");
    upgrade.accept(move |client| serve(client, session, initial_state, send_everything))
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

/// Serves one connection, from the first message to the close.
async fn serve(client: WsClient, session: WsSession, initial_state: WsInitialState, whole: bool) {
    let WsClient {
        socket,
        validity,
        is_remote: remote,
    } = client;
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
            reason = token_ended(validity) => reason,
            reason = receiver.run() => reason,
            reason = sending => reason,
        };
        if close_reason == WsCloseReason::ShuttingDown {
            // The client connects to the next daemon.
            receiver.keep_lease();
        } else {
            receiver.release_lease().await;
        }
        close_reason
    };
    close(&mut sink, close_reason).await;
}
