//! The events of a task over a WebSocket, one text message each. What the client sends is ignored.

use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use ostler_api::TaskEventBody;

use super::connection::{
    UpgradeRequest, WsClient, WsCloseReason, close, idle_timeout, next_message, next_ping_time,
    token_ended, until_deadline,
};
use crate::rest::response::RestResult;
use crate::rest::task_events::TaskEvents;

/// Sends `events` over the requested connection, to the last one.
///
/// # Errors
/// When no WebSocket is requested.
pub(in crate::rest) fn send_task_events(
    upgrade: UpgradeRequest,
    events: TaskEvents,
) -> RestResult<Response> {
    upgrade.accept(move |client| serve(client, events))
}

async fn serve(client: WsClient, mut events: TaskEvents) {
    let WsClient {
        socket,
        validity,
        is_remote,
    } = client;
    let (mut sink, mut stream) = socket.split();
    let receiving = async {
        loop {
            match next_message(&mut stream, idle_timeout(is_remote)).await {
                Ok(Message::Close(_)) => return WsCloseReason::Disconnected,
                Ok(_) => {}
                Err(reason) => return reason,
            }
        }
    };
    let reason = tokio::select! {
        biased;
        reason = token_ended(validity) => reason,
        reason = receiving => reason,
        reason = send_all(&mut sink, &mut events, is_remote) => reason,
    };
    close(&mut sink, reason).await;
}

/// Sends events until there are no more.
async fn send_all(
    sink: &mut SplitSink<WebSocket, Message>,
    events: &mut TaskEvents,
    is_remote: bool,
) -> WsCloseReason {
    let mut is_ended = false;
    let mut next_ping = is_remote.then(next_ping_time);
    loop {
        let message = tokio::select! {
            biased;
            event = events.next() => match event {
                Some(event) => {
                    is_ended = event.event.is_last();
                    Message::Text(text(&event).into())
                }
                None if is_ended => return WsCloseReason::TaskEnded,
                None => return WsCloseReason::ShuttingDown,
            },
            () = until_deadline(next_ping) => {
                next_ping = Some(next_ping_time());
                Message::Ping(bytes::Bytes::new())
            }
        };
        if sink.send(message).await.is_err() {
            return WsCloseReason::Disconnected;
        }
    }
}

fn text(event: &TaskEventBody) -> String {
    serde_json::to_string(event).unwrap_or_default()
}
