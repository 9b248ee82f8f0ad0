//! Interactions over a WebSocket: what happens to them is sent, answers and cancellations are
//! accepted. The two halves do not wait for each other.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use ostler_api::{InteractionClientMessage, InteractionServerMessage};
use ostler_engine::Engine;
use ostler_engine::interaction::{InteractionNews, InteractionWatch};
use ostler_interface::convert::interaction_body;
use ostler_interface::http::HttpProblem;
use ostler_model::Caller;
use tokio::sync::mpsc;

use super::connection::{
    UpgradeRequest, WsClient, WsCloseReason, close, idle_timeout, next_message, next_ping_time,
    token_ended, until_deadline,
};
use crate::rest::response::RestResult;
use crate::rest::state::RestState;

/// The most refusals that wait until they are sent.
const REFUSALS: usize = 16;

/// Serves the caller's interactions over the requested connection.
///
/// # Errors
/// When no WebSocket is requested.
pub(in crate::rest) fn serve_interactions(
    upgrade: UpgradeRequest,
    state: RestState,
    caller: Caller,
) -> RestResult<Response> {
    upgrade.accept(move |client| serve(client, state, caller))
}

async fn serve(client: WsClient, state: RestState, caller: Caller) {
    let WsClient {
        socket,
        validity,
        is_remote,
    } = client;
    let (mut sink, stream) = socket.split();
    let (refusals, refused) = mpsc::channel(REFUSALS);
    let shutdown = state.shutdown.clone();
    let sender = InteractionSender {
        watch: state.engine.watch_interactions(&caller),
        engine: state.engine.clone(),
        refused,
        sink: &mut sink,
    };
    let mut receiver = InteractionReceiver {
        state,
        caller,
        stream,
        refusals,
        idle_timeout: idle_timeout(is_remote),
    };
    let reason = tokio::select! {
        biased;
        () = shutdown.cancelled() => WsCloseReason::ShuttingDown,
        reason = token_ended(validity) => reason,
        reason = receiver.run() => reason,
        reason = sender.run(is_remote) => reason,
    };
    close(&mut sink, reason).await;
}

/// The half that sends.
struct InteractionSender<'a> {
    watch: InteractionWatch,
    engine: Engine,
    refused: mpsc::Receiver<InteractionServerMessage>,
    sink: &'a mut SplitSink<WebSocket, Message>,
}

impl InteractionSender<'_> {
    /// Runs until the client is gone.
    async fn run(mut self, is_remote: bool) -> WsCloseReason {
        match self.send_all(is_remote).await {
            Ok(never) => match never {},
            Err(reason) => reason,
        }
    }

    async fn send_all(
        &mut self,
        is_remote: bool,
    ) -> Result<std::convert::Infallible, WsCloseReason> {
        self.send_news().await?;
        self.send_message(&InteractionServerMessage::UpToDate)
            .await?;
        let mut next_ping = is_remote.then(next_ping_time);
        loop {
            tokio::select! {
                biased;
                () = self.watch.changed() => self.send_news().await?,
                Some(refusal) = self.refused.recv() => {
                    // What closed the question comes before the refusal of a late answer.
                    self.send_news().await?;
                    self.send_message(&refusal).await?;
                }
                () = until_deadline(next_ping) => {
                    next_ping = Some(next_ping_time());
                    self.send(Message::Ping(bytes::Bytes::new())).await?;
                }
            }
        }
    }

    async fn send_news(&mut self) -> Result<(), WsCloseReason> {
        for news in self.watch.refresh() {
            let message = match news {
                InteractionNews::Opened(interaction) => InteractionServerMessage::Opened {
                    interaction: Box::new(interaction_body(&self.engine, &interaction)),
                },
                InteractionNews::Ended(interaction) => InteractionServerMessage::Ended {
                    interaction: Box::new(interaction_body(&self.engine, &interaction)),
                },
                InteractionNews::Gone(id) => InteractionServerMessage::Gone { id: id.to_string() },
            };
            self.send_message(&message).await?;
        }
        Ok(())
    }

    async fn send_message(
        &mut self,
        message: &InteractionServerMessage,
    ) -> Result<(), WsCloseReason> {
        let text = serde_json::to_string(message).map_err(|_| WsCloseReason::ReadFailed)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), WsCloseReason> {
        let sent = self.sink.send(message).await;
        sent.map_err(|_| WsCloseReason::Disconnected)
    }
}

/// The half that carries out what the client requests, one after the other.
struct InteractionReceiver {
    state: RestState,
    caller: Caller,
    stream: SplitStream<WebSocket>,
    refusals: mpsc::Sender<InteractionServerMessage>,
    idle_timeout: Option<Duration>,
}

impl InteractionReceiver {
    /// Runs until the client is gone.
    async fn run(&mut self) -> WsCloseReason {
        loop {
            let refusal = match next_message(&mut self.stream, self.idle_timeout).await {
                Ok(Message::Text(text)) => self.handle(&text).await.err(),
                Ok(Message::Binary(_)) => {
                    let problem = HttpProblem::value("a binary message; allowed: text, in JSON");
                    Some(refusal(None, problem))
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => None,
                Ok(Message::Close(_)) => return WsCloseReason::Disconnected,
                Err(reason) => return reason,
            };
            if let Some(refusal) = refusal
                && self.refusals.send(refusal).await.is_err()
            {
                return WsCloseReason::Disconnected;
            }
        }
    }

    async fn handle(&self, text: &str) -> Result<(), InteractionServerMessage> {
        let message = serde_json::from_str(text).map_err(|error| {
            let problem = HttpProblem::value(format!("the message: {error}"));
            refusal(None, problem)
        })?;
        let engine = &self.state.engine;
        let (id, result) = match message {
            InteractionClientMessage::Answer { id, value } => {
                let result = engine.answer_interaction(&self.caller, &id, value).await;
                (id, result)
            }
            InteractionClientMessage::Cancel { id, reason } => {
                let result = engine.cancel_interaction(&self.caller, &id, reason).await;
                (id, result)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => Err(refusal(Some(id), error.into())),
        }
    }
}

fn refusal(id: Option<String>, HttpProblem(problem): HttpProblem) -> InteractionServerMessage {
    InteractionServerMessage::Refused {
        id,
        code: problem.code,
        message: problem.message,
    }
}
