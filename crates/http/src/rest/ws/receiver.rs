//! Carries out the client's messages: types, acquires and releases the lease, changes the size.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::SplitStream;
use futures_util::{FutureExt as _, StreamExt as _};
use ostler_api::{TerminalClientMessage, TerminalServerMessage};
use ostler_engine::{Lease, TerminalInput};
use ostler_model::{ErrorCode, TermSize};
use ostler_terminal::InputPiece;
use tokio::sync::mpsc;

use super::connection::{WsCloseReason, idle_timeout, next_message};
use super::session::{GrantedLease, PendingLeaseRequests, SenderCommand, WsSession};
use crate::rest::response::RestResult;
use ostler_interface::http::HttpProblem;

/// The most characters of a client's name.
const NAME_CHARS: usize = 60;

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct WsReceiver {
    session: WsSession,
    stream: SplitStream<WebSocket>,
    sender: mpsc::Sender<SenderCommand>,
    pending: PendingLeaseRequests,
    lease: Option<Lease>,
    /// The size that this connection set.
    resized: Option<TermSize>,
    idle_timeout: Option<Duration>,
    /// A message that was received behind keys that were dropped.
    next_message: Option<Message>,
}

/// Why a client's command was not carried out, or the end of the connection.
enum WsCommandError {
    Refused(HttpProblem),
    Closed(WsCloseReason),
}

impl<E: Into<HttpProblem>> From<E> for WsCommandError {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl WsReceiver {
    pub(super) fn new(
        session: WsSession,
        stream: SplitStream<WebSocket>,
        sender: mpsc::Sender<SenderCommand>,
        pending: PendingLeaseRequests,
        is_remote: bool,
    ) -> Self {
        Self {
            session,
            stream,
            sender,
            pending,
            lease: None,
            resized: None,
            idle_timeout: idle_timeout(is_remote),
            next_message: None,
        }
    }

    /// Runs until the client is gone.
    pub(super) async fn run(&mut self) -> WsCloseReason {
        loop {
            let message = tokio::select! {
                biased;
                () = lease_lost(&mut self.lease) => {
                    // The new holder of the lease decides the size now.
                    (self.lease, self.resized) = (None, None);
                    if let Err(reason) = self.send(SenderCommand::LeaseReleased).await {
                        return reason;
                    }
                    continue;
                }
                message = receive(&mut self.next_message, &mut self.stream, self.idle_timeout) => message,
            };
            let result = match message {
                Ok(message) => self.handle(message).await,
                Err(reason) => return reason,
            };
            let reported = match result {
                Ok(()) => Ok(()),
                Err(WsCommandError::Closed(reason)) => Err(reason),
                // After the end of the session only the end is reported.
                Err(WsCommandError::Refused(_)) if self.session.is_finished() => Ok(()),
                Err(WsCommandError::Refused(problem)) => {
                    self.send(SenderCommand::Send(refused_message(problem, false)))
                        .await
                }
            };
            if let Err(reason) = reported {
                return reason;
            }
        }
    }

    /// Keeps the lease until the daemon ends.
    pub(super) fn keep_lease(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.keep();
        }
    }

    /// Releases the lease and restores the terminal's former size.
    pub(super) async fn release_lease(&mut self) {
        if let Some(lease) = self.lease.take() {
            let applied = self.resized.take();
            if let Some(before) = lease.size_before()
                && self.is_unchanged(applied)
            {
                // It may have ended meanwhile.
                drop(self.set_size(&lease, before).await);
            }
            drop(lease);
        }
    }

    async fn handle(&mut self, message: Message) -> Result<(), WsCommandError> {
        match message {
            Message::Binary(keys) => self.type_in(keys.into()).await,
            Message::Text(text) => {
                let message = serde_json::from_str(&text)
                    .map_err(|error| HttpProblem::value(format!("the message: {error}")))?;
                self.handle_message(message).await
            }
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(WsCommandError::Closed(WsCloseReason::Disconnected)),
        }
    }

    async fn handle_message(
        &mut self,
        message: TerminalClientMessage,
    ) -> Result<(), WsCommandError> {
        match message {
            TerminalClientMessage::Take { take_over, name } => {
                self.acquire_lease(take_over, &name).await
            }
            TerminalClientMessage::HandBack => {
                self.release_lease().await;
                self.send_or_stop(SenderCommand::LeaseReleased).await
            }
            TerminalClientMessage::Resize { cols, rows } => {
                self.resize(TermSize { cols, rows }).await
            }
            TerminalClientMessage::Repaint => self.send_or_stop(SenderCommand::Repaint).await,
        }
    }

    /// Acquires the lease and sends the answer.
    async fn acquire_lease(&mut self, take_over: bool, name: &str) -> Result<(), WsCommandError> {
        self.pending.add();
        match self.try_acquire_lease(take_over, sanitize_name(name)).await {
            Ok(lease) => self.send_or_stop(SenderCommand::LeaseGranted(lease)).await,
            // The end of the session is the answer.
            Err(_) if self.session.is_finished() => Ok(()),
            Err(problem) => {
                self.send_or_stop(SenderCommand::LeaseRefused(refused_message(problem, true)))
                    .await
            }
        }
    }

    async fn try_acquire_lease(
        &mut self,
        take_over: bool,
        name: String,
    ) -> RestResult<GrantedLease> {
        let lease = match &mut self.lease {
            Some(lease) => lease,
            free @ None => {
                let WsSession { state, caller, id } = &self.session;
                let lease = state.engine.acquire_lease(caller, id, &name, take_over);
                free.insert(lease.await?)
            }
        };
        let holder = self.session.holder()?;
        // The order matters: the holder read before the lease was lost is this connection.
        let is_lost = lease.wait_takeover().now_or_never().is_some();
        let own = holder.filter(|_| !is_lost);
        let name = own.as_ref().map_or(name, |own| own.name.clone());
        Ok(GrantedLease { name, own })
    }

    async fn resize(&mut self, size: TermSize) -> Result<(), WsCommandError> {
        let now = self.session.size()?;
        let Some(lease) = &self.lease else {
            return Err(self.no_lease());
        };
        if now == size {
            return Ok(());
        }
        // Before the change: another connection may take over meanwhile.
        lease.record_size_before(now);
        self.set_size(lease, size).await?;
        self.resized = Some(size);
        Ok(())
    }

    /// Whether the terminal has the size that this connection set, where it did.
    fn is_unchanged(&self, applied: Option<TermSize>) -> bool {
        applied.is_none_or(|applied| self.session.size().is_ok_and(|now| now == applied))
    }

    async fn set_size(&self, lease: &Lease, size: TermSize) -> Result<(), HttpProblem> {
        let WsSession { state, caller, id } = &self.session;
        let resized = state
            .engine
            .resize_terminal(caller, id, size, Some(lease.id()));
        Ok(resized.await?)
    }

    /// Types; what the terminal does not take at once is offered again as long as it takes some of
    /// it.
    async fn type_in(&mut self, mut keys: Vec<u8>) -> Result<(), WsCommandError> {
        let total = keys.len();
        while !keys.is_empty() {
            let Some(lease) = &self.lease else {
                return Err(self.no_lease());
            };
            let typing = TerminalInput {
                pieces: vec![InputPiece::Raw(keys.clone())],
                lease: Some(lease.id().clone()),
            };
            let WsSession { state, caller, id } = &self.session;
            let outcome = state.engine.send_input(caller, id, typing).await?;
            let written = usize::try_from(outcome.accepted).unwrap_or(usize::MAX);
            if written == 0 {
                let dropped = self.discard_received_keys();
                let (unwritten, total) = (keys.len() + dropped, total + dropped);
                let message = format!(
                    "the program does not read: {unwritten} of {total} bytes were not taken"
                );
                return Err(HttpProblem::new(ErrorCode::ProcessControl, message, None).into());
            }
            keys.drain(..written.min(keys.len()));
        }
        Ok(())
    }

    /// Drops the keys that were received meanwhile, mostly the rest of a paste, each part of which
    /// would wait as long; returns how many bytes.
    fn discard_received_keys(&mut self) -> usize {
        let mut dropped = 0;
        while let Some(Some(Ok(message))) = self.stream.next().now_or_never() {
            if let Message::Binary(keys) = &message {
                dropped += keys.len();
            } else {
                self.next_message = Some(message);
                break;
            }
        }
        dropped
    }

    fn no_lease(&self) -> WsCommandError {
        let message = match self.session.holder() {
            Ok(Some(holder)) => format!("{} types here now; take over first", holder.name),
            Ok(None) => "a connection only watches until it takes the lease".to_owned(),
            Err(problem) => return WsCommandError::Refused(problem),
        };
        WsCommandError::Refused(HttpProblem::new(ErrorCode::ProcessControl, message, None))
    }

    async fn send_or_stop(&self, command: SenderCommand) -> Result<(), WsCommandError> {
        self.send(command).await.map_err(WsCommandError::Closed)
    }

    async fn send(&self, command: SenderCommand) -> Result<(), WsCloseReason> {
        self.sender
            .send(command)
            .await
            .map_err(|_| WsCloseReason::Disconnected)
    }
}

/// Receives the next message: the one that was set aside, or one from the connection. Cancel safe.
async fn receive(
    set_aside: &mut Option<Message>,
    stream: &mut SplitStream<WebSocket>,
    idle_timeout: Option<Duration>,
) -> Result<Message, WsCloseReason> {
    match set_aside.take() {
        Some(message) => Ok(message),
        None => next_message(stream, idle_timeout).await,
    }
}

/// Waits until another client takes the lease; without a lease, forever.
async fn lease_lost(lease: &mut Option<Lease>) {
    match lease {
        Some(lease) => drop(lease.wait_takeover().await),
        None => std::future::pending().await,
    }
}

/// The name on one line, as shown to others.
fn sanitize_name(given: &str) -> String {
    let printable = given.chars().filter(|letter| !letter.is_control());
    let name: String = printable.take(NAME_CHARS).collect();
    match name.trim() {
        "" => "somebody".to_owned(),
        name => name.to_owned(),
    }
}

fn refused_message(HttpProblem(problem): HttpProblem, answers_take: bool) -> TerminalServerMessage {
    TerminalServerMessage::Refused {
        code: problem.code,
        message: problem.message,
        take: answers_take,
    }
}
