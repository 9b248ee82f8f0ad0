//! Sends a terminal's output as it arrives, and changes of its state.
//!
//! A client that does not read blocks only its own connection: nothing is read from the journal for
//! it meanwhile. When it continues and is further behind than [`LAG_BYTES`], it is sent a gap
//! message and the current screen.

use std::ops::Range;

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt as _;
use futures_util::stream::SplitSink;
use ostler_api::TerminalServerMessage;
use ostler_engine::{ExecutionWatch, LeaseHolder, OutputFollower, lost_bytes};
use ostler_journal::{BytePage, ReadError};
use ostler_model::{Cursor, TermSize};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::connection::{WsCloseReason, next_ping_time, until_deadline};
use super::session::{GrantedLease, PendingLeaseRequests, SenderCommand, WsSession};
use crate::rest::response::RestResult;
use ostler_interface::convert::execution_body;

/// Bytes of output a client may lag before a screen replaces them.
pub(crate) const LAG_BYTES: u64 = 1024 * 1024;
/// How much output is sent before a repaint that was asked for; other messages wait meanwhile.
const UNSENT_BYTES: u64 = 256 * 1024;
/// The most bytes of output in one message.
const PAGE_BYTES: u64 = 64 * 1024;
/// CAN, which aborts a control sequence cut in half by the gap.
const CANCEL: u8 = 0x18;

/// What the client was last sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WsSentState {
    pub(super) size: TermSize,
    pub(super) holder: Option<LeaseHolder>,
    pub(super) yours: bool,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct WsSender<'a> {
    session: &'a WsSession,
    sink: &'a mut SplitSink<WebSocket, Message>,
    follower: OutputFollower,
    watch: ExecutionWatch,
    sent: WsSentState,
    /// The holder of the lease while it is this connection.
    own_holder: Option<LeaseHolder>,
    pending: PendingLeaseRequests,
    send_everything: bool,
    next_ping: Option<Instant>,
}

/// The next event to handle.
enum WsSenderEvent {
    Command(Option<SenderCommand>),
    StateChanged,
    Page(Result<Option<BytePage>, ostler_engine::Error>),
    PingDue,
}

impl<'a> WsSender<'a> {
    pub(super) fn open(
        session: &'a WsSession,
        sink: &'a mut SplitSink<WebSocket, Message>,
        from: Cursor,
        sent: WsSentState,
        pending: PendingLeaseRequests,
        send_everything: bool,
        is_remote: bool,
    ) -> RestResult<Self> {
        Ok(Self {
            follower: follow_from(session, from)?,
            watch: session.state.engine.watch(&session.caller, &session.id)?,
            session,
            sink,
            sent,
            own_holder: None,
            pending,
            send_everything,
            next_ping: is_remote.then(next_ping_time),
        })
    }

    /// Runs until the session or the connection ends.
    pub(super) async fn run(
        &mut self,
        hello: TerminalServerMessage,
        paint: Option<Vec<u8>>,
        mut commands: mpsc::Receiver<SenderCommand>,
    ) -> WsCloseReason {
        let greeting = async {
            self.send_message(&hello).await?;
            self.send_paint(paint.unwrap_or_default()).await
        };
        if let Err(reason) = greeting.await {
            return reason;
        }
        loop {
            let event = tokio::select! {
                biased;
                command = commands.recv() => WsSenderEvent::Command(command),
                () = self.watch.state_changed() => WsSenderEvent::StateChanged,
                page = self.follower.next() => WsSenderEvent::Page(page),
                () = until_deadline(self.next_ping) => WsSenderEvent::PingDue,
            };
            if let Err(reason) = self.handle(event).await {
                return reason;
            }
        }
    }

    async fn handle(&mut self, event: WsSenderEvent) -> Result<(), WsCloseReason> {
        match event {
            WsSenderEvent::Command(None) => Err(WsCloseReason::Disconnected),
            WsSenderEvent::Command(Some(command)) => self.handle_command(command).await,
            WsSenderEvent::StateChanged => self.send_changes().await,
            WsSenderEvent::Page(Ok(Some(page))) => self.send_page(page).await,
            WsSenderEvent::Page(Ok(None)) => Err(self.finish().await),
            WsSenderEvent::Page(Err(error)) => {
                tracing::warn!(%error, id = self.session.id, "a terminal cannot be shown");
                Err(WsCloseReason::ReadFailed)
            }
            WsSenderEvent::PingDue => {
                self.next_ping = Some(next_ping_time());
                self.send(Message::Ping(bytes::Bytes::new())).await
            }
        }
    }

    async fn handle_command(&mut self, word: SenderCommand) -> Result<(), WsCloseReason> {
        match word {
            SenderCommand::Send(message) => self.send_message(&message).await,
            SenderCommand::LeaseGranted(lease) => {
                self.pending.resolve();
                self.confirm_lease(lease).await
            }
            SenderCommand::LeaseRefused(message) => {
                self.pending.resolve();
                self.send_message(&message).await?;
                self.send_changes().await
            }
            SenderCommand::LeaseReleased => {
                self.own_holder = None;
                self.send_changes().await
            }
            SenderCommand::Repaint => self.repaint().await,
        }
    }

    /// Sends the answer to a lease request, and then what has changed since.
    async fn confirm_lease(
        &mut self,
        GrantedLease { name, own }: GrantedLease,
    ) -> Result<(), WsCloseReason> {
        (self.own_holder, self.sent.yours) = (own.clone(), true);
        self.sent.holder = own;
        let (holder, yours) = (Some(name), true);
        self.send_message(&TerminalServerMessage::Lease { holder, yours })
            .await?;
        self.send_changes().await
    }

    /// Sends changes of the terminal's state.
    async fn send_changes(&mut self) -> Result<(), WsCloseReason> {
        let size = self.watch.refresh().size();
        if let Some(size) = size.filter(|&size| size != self.sent.size) {
            self.sent.size = size;
            self.send_message(&TerminalServerMessage::Resized { size })
                .await?;
        }
        if self.pending.has_pending() {
            // The pending answer is sent first, and then checks for changes.
            return Ok(());
        }
        let holder = self
            .session
            .holder()
            .map_err(|_| WsCloseReason::ReadFailed)?;
        let yours = holder.is_some() && holder == self.own_holder;
        if (&holder, yours) != (&self.sent.holder, self.sent.yours) {
            let name = holder.as_ref().map(|holder| holder.name.clone());
            (self.sent.holder, self.sent.yours) = (holder, yours);
            let holder = name;
            self.send_message(&TerminalServerMessage::Lease { holder, yours })
                .await?;
        }
        Ok(())
    }

    async fn send_page(&mut self, page: BytePage) -> Result<(), WsCloseReason> {
        let end = self.watch.refresh().output_end;
        let from = page.gap.map_or_else(
            || {
                page.chunks
                    .first()
                    .map_or(page.next.offset, |chunk| chunk.offset)
            },
            |gap| gap.from,
        );
        if !self.send_everything && end.saturating_sub(from) > LAG_BYTES {
            return self.skip_to_screen(from).await;
        }
        if let Some(gap) = page.gap {
            self.send_gap(gap.from, gap.to).await?;
        }
        for chunk in page.chunks {
            self.send(Message::Binary(chunk.bytes.into())).await?;
        }
        self.send_changes().await
    }

    /// Skips output: the present screen replaces it.
    async fn skip_to_screen(&mut self, from: u64) -> Result<(), WsCloseReason> {
        let (screen, to) = self.render_screen().await?;
        let lost_bytes = self.count_lost(from..to)?;
        let message = TerminalServerMessage::Gap {
            from,
            to,
            lost_bytes,
        };
        self.send_message(&message).await?;
        self.send_screen(screen, to).await
    }

    /// How much of the skipped range was lost, not dropped on purpose.
    fn count_lost(&mut self, within: Range<u64>) -> Result<u64, WsCloseReason> {
        if within.is_empty() {
            return Ok(0);
        }
        let WsSession { state, caller, id } = self.session;
        let journal = state
            .engine
            .journal(caller, id)
            .map_err(|_| WsCloseReason::ReadFailed)?;
        let newest_info = || Ok::<_, ReadError>(self.watch.refresh());
        lost_bytes(newest_info, &journal, within, &[]).map_err(|_| WsCloseReason::ReadFailed)
    }

    /// Reports output that is gone.
    async fn send_gap(&mut self, from: u64, to: u64) -> Result<(), WsCloseReason> {
        let lost_bytes = self.watch.refresh().lost_bytes(from, to);
        let message = TerminalServerMessage::Gap {
            from,
            to,
            lost_bytes,
        };
        self.send_message(&message).await
    }

    /// Repaints on request. Output that was not sent yet is sent before: what it scrolls away is in no
    /// screen. Where that would take long, the screen replaces it, which the client is told.
    async fn repaint(&mut self) -> Result<(), WsCloseReason> {
        let from = self.follower.cursor().offset;
        let (screen, to) = self.render_screen().await?;
        if !self.send_everything && to.saturating_sub(from) > UNSENT_BYTES {
            return self.skip_to_screen(from).await;
        }
        self.send_output_until(to).await?;
        self.send_screen(screen, to).await
    }

    /// Sends the output up to an offset that was printed already, and what is gone of it.
    async fn send_output_until(&mut self, to: u64) -> Result<(), WsCloseReason> {
        while self.follower.cursor().offset < to {
            let page = self.follower.next().await;
            let Some(page) = page.map_err(|_| WsCloseReason::ReadFailed)? else {
                // The session has ended: nothing more is read.
                return Ok(());
            };
            if let Some(gap) = page.gap.filter(|gap| gap.from < to) {
                self.send_gap(gap.from, gap.to.min(to)).await?;
            }
            for mut chunk in page.chunks {
                let wanted = usize::try_from(to.saturating_sub(chunk.offset)).unwrap_or(usize::MAX);
                chunk.bytes.truncate(wanted);
                if !chunk.bytes.is_empty() {
                    self.send(Message::Binary(chunk.bytes.into())).await?;
                }
            }
        }
        Ok(())
    }

    async fn send_screen(&mut self, mut screen: Vec<u8>, offset: u64) -> Result<(), WsCloseReason> {
        self.send_changes().await?;
        self.send_message(&TerminalServerMessage::Paint { offset })
            .await?;
        screen.insert(0, CANCEL);
        self.send_paint(screen).await?;
        self.resume_from(offset)
    }

    async fn render_screen(&self) -> Result<(Vec<u8>, u64), WsCloseReason> {
        let WsSession { state, caller, id } = self.session;
        let repaint = state.engine.repaint(caller, id).await;
        repaint.map_or(Err(WsCloseReason::ReadFailed), |(screen, checkpoint)| {
            Ok((screen, checkpoint.offset))
        })
    }

    fn resume_from(&mut self, offset: u64) -> Result<(), WsCloseReason> {
        let from = Cursor { offset, event: 0 };
        self.follower = follow_from(self.session, from).map_err(|_| WsCloseReason::ReadFailed)?;
        Ok(())
    }

    /// Nothing more comes: the session has ended, or the engine is shutting down.
    async fn finish(&mut self) -> WsCloseReason {
        let info = self.watch.refresh();
        if !info.state.is_finished() {
            return WsCloseReason::ShuttingDown;
        }
        let sending = async {
            self.send_changes().await?;
            let info = Box::new(execution_body(&info));
            self.send_message(&TerminalServerMessage::Exit(info)).await
        };
        sending
            .await
            .map_or_else(|reason| reason, |()| WsCloseReason::SessionEnded)
    }

    async fn send_paint(&mut self, bytes: Vec<u8>) -> Result<(), WsCloseReason> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.send(Message::Binary(bytes.into())).await
    }

    async fn send_message(&mut self, message: &TerminalServerMessage) -> Result<(), WsCloseReason> {
        let text = serde_json::to_string(message).map_err(|_| WsCloseReason::ReadFailed)?;
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), WsCloseReason> {
        self.sink
            .send(message)
            .await
            .map_err(|_| WsCloseReason::Disconnected)
    }
}

fn follow_from(session: &WsSession, from: Cursor) -> RestResult<OutputFollower> {
    let follower = session
        .state
        .engine
        .follow(&session.caller, &session.id, from)?;
    Ok(follower.page_bytes(PAGE_BYTES))
}
