//! One connection to a session: received output is shown, typed keys are sent.

use std::io;
use std::time::Duration;

use ostler_api::{GapBody, TerminalClientMessage, TerminalHello, TerminalServerMessage};
use ostler_model::Signal;
use tokio::io::{AsyncReadExt as _, Stdin};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::input_gate::{InputAction, LeaseChange};
use super::key_parser::KeyAction;
use super::session::{AttachSession, DetachReason};
use super::signals::{SignalEvent, stop_self};
use super::tty::{client_name, window_size};
use crate::client::{SocketEvent, TerminalSocket};
use crate::error::CommandError;

/// The most bytes of keys sent at once; less than the limit of a message.
const KEYS_BYTES: usize = 16 * 1024;

/// Milliseconds without output after which a client whose input has ended detaches.
const QUIET_MS: u64 = 500;
/// The most milliseconds that such a client stays while there is output.
const MAX_QUIET_MS: u64 = 5_000;

/// Milliseconds that a detaching client waits for the lease that its last keys need.
const LEASE_WAIT_MS: u64 = 1_000;

/// The next event of a connection.
enum ConnectionEvent {
    Signal(SignalEvent),
    Keyboard(io::Result<usize>),
    /// Standard input has ended, and the session has received all of it.
    InputFinished(Result<(), CommandError>),
    /// Nothing was shown for [`QUIET_MS`] after that.
    IdleTimeout,
    Socket(Result<SocketEvent, CommandError>),
}

/// The outcome of one step; none continues.
type StepOutcome = Result<Option<DetachReason>, CommandError>;

impl AttachSession {
    /// Runs the connection until it breaks or the client detaches.
    ///
    /// # Errors
    /// [`CommandError::Disconnected`] when the connection broke.
    pub(super) async fn run_connection(
        &mut self,
        socket: &mut TerminalSocket,
    ) -> Result<DetachReason, CommandError> {
        let mut buffer = vec![0; KEYS_BYTES];
        self.state.paint_expected = self.state.offset.is_none();
        loop {
            // Keys first: a flood of output must not prevent detaching.
            let next = tokio::select! {
                biased;
                call = self.signals.next() => ConnectionEvent::Signal(call),
                read = read(&mut self.stdin, &mut buffer), if self.state.has_hello && socket.has_room() => ConnectionEvent::Keyboard(read),
                Some(fed) = self.input_tasks.join_next() => ConnectionEvent::InputFinished(fed.unwrap_or(Ok(()))),
                () = wait_until(self.state.leave_at) => ConnectionEvent::IdleTimeout,
                event = socket.next() => ConnectionEvent::Socket(event),
            };
            let step = match next {
                ConnectionEvent::Signal(call) => self.handle_signal(call, socket).await,
                ConnectionEvent::Keyboard(Ok(0) | Err(_)) => {
                    Ok(Some(DetachReason::Signal(Signal::HUP)))
                }
                ConnectionEvent::Keyboard(Ok(read)) => {
                    self.handle_keys(&buffer[..read], socket).await
                }
                ConnectionEvent::InputFinished(fed) => {
                    self.on_input_finished(fed);
                    Ok(None)
                }
                ConnectionEvent::IdleTimeout => Ok(Some(DetachReason::Detached)),
                ConnectionEvent::Socket(Ok(event)) => self.handle_socket_event(event, socket).await,
                ConnectionEvent::Socket(Err(error)) => Err(error),
            };
            if let Some(reason) = step? {
                return Ok(reason);
            }
        }
    }

    /// Restores the terminal size from before this client.
    pub(super) async fn restore_size(&mut self, socket: &mut TerminalSocket) {
        let Some(former) = self
            .state
            .original_size
            .filter(|_| self.state.input_gate.holds_lease())
        else {
            return;
        };
        if self.state.size != Some(former) {
            let (cols, rows) = (former.cols, former.rows);
            // The daemon does the same when the connection ends.
            socket
                .send_message(&TerminalClientMessage::Resize { cols, rows })
                .await;
        }
    }

    async fn handle_socket_event(
        &mut self,
        socket_event: SocketEvent,
        socket: &mut TerminalSocket,
    ) -> StepOutcome {
        match socket_event {
            SocketEvent::Bytes(bytes) => self.show_output(&bytes).await,
            SocketEvent::Message(message) => self.handle_message(message, socket).await,
        }
    }

    /// Handles the end of standard input. A session of another client does not end with it: this
    /// client detaches once its last input had time to show its effect.
    fn on_input_finished(&mut self, fed: Result<(), CommandError>) {
        // Whether input is read is up to a command that this client started: it may have ended.
        let is_own = self.options.initial_view == super::InitialView::Start;
        if let Err(error) = fed
            && !is_own
        {
            crate::print_error(&error);
        }
        if self.options.initial_view == super::InitialView::Screen {
            let now = Instant::now();
            let latest = now + Duration::from_millis(MAX_QUIET_MS);
            self.state.leave_at = Some((now + Duration::from_millis(QUIET_MS), latest));
        }
    }

    async fn show_output(&mut self, bytes: &[u8]) -> StepOutcome {
        if let Some((at, latest)) = &mut self.state.leave_at {
            *at = (*latest).min(Instant::now() + Duration::from_millis(QUIET_MS));
        }
        let is_output = !std::mem::take(&mut self.state.paint_expected);
        self.tty.show(bytes).await?;
        if let Some(offset) = self.state.offset.as_mut().filter(|_| is_output) {
            *offset += bytes.len() as u64;
        }
        self.state.repaint_pending &= is_output;
        if !self.state.repaint_pending
            && let Some(notice) = self.state.notice.take()
        {
            self.show_notice(&notice);
        }
        Ok(None)
    }

    async fn handle_message(
        &mut self,
        message: TerminalServerMessage,
        socket: &mut TerminalSocket,
    ) -> StepOutcome {
        match message {
            TerminalServerMessage::Hello(hello) => self.handle_hello(hello, socket).await,
            TerminalServerMessage::Lease { holder, yours } => {
                self.handle_lease(holder, yours, socket).await;
            }
            TerminalServerMessage::Resized { size } => self.state.size = Some(size),
            TerminalServerMessage::Gap {
                from,
                to,
                lost_bytes,
            } => {
                let gap = GapBody {
                    from,
                    to,
                    lost_bytes,
                };
                self.handle_gap(gap);
            }
            TerminalServerMessage::Paint { offset } => {
                self.state.offset = Some(offset);
                (self.state.paint_expected, self.state.notice_covers) = (true, false);
            }
            TerminalServerMessage::Refused { message, take, .. } => {
                let lost = if take {
                    self.state.input_gate.lease_refused()
                } else {
                    0
                };
                self.show_notice(&unsent_message(message, lost));
            }
            TerminalServerMessage::Exit(info) => return Ok(Some(DetachReason::Exit(info))),
        }
        Ok(None)
    }

    fn handle_gap(&mut self, gap: GapBody) {
        self.state.offset = Some(gap.to);
        self.state.missing_output.add(gap);
        if self.options.initial_view == super::InitialView::Start || !self.tty.is_terminal() {
            let notice = format!("{} bytes of output are left out", gap.bytes());
            self.tty.show_notice(&notice);
        } else if gap.lost_bytes > 0 {
            self.show_notice(&format!("{} bytes of output were lost", gap.lost_bytes));
        }
    }

    async fn handle_hello(&mut self, hello: TerminalHello, socket: &mut TerminalSocket) {
        self.state.attempts.reset();
        self.state.has_hello = true;
        self.state.offset = Some(hello.offset);
        self.state.size = Some(hello.size);
        self.state.original_size.get_or_insert(hello.size);
        self.state.holder = hello.holder;
        if !self.state.input_gate.wants_lease() {
            return;
        }
        match &self.state.holder {
            Some(holder) if !self.options.take_over => {
                let offer = self.options.key.command_hint(&["t takes over"]);
                let message = format!("{holder} types{offer}");
                self.state.input_gate.release();
                self.state.notice = Some(unsent_message(message, self.state.input_gate.discard()));
            }
            Some(_) | None => self.request_lease(self.options.take_over, socket).await,
        }
    }

    async fn request_lease(&mut self, take_over: bool, socket: &mut TerminalSocket) {
        self.state.input_gate.request_lease();
        let name = client_name();
        socket
            .send_message(&TerminalClientMessage::Take { take_over, name })
            .await;
    }

    async fn handle_lease(
        &mut self,
        holder: Option<String>,
        is_ours: bool,
        socket: &mut TerminalSocket,
    ) {
        self.state.holder = holder;
        match self.state.input_gate.lease_changed(is_ours) {
            LeaseChange::Acquired(keys) => {
                self.fit_size(socket).await;
                return self.send_input(keys, socket).await;
            }
            LeaseChange::Pending => return,
            LeaseChange::Lost => {}
        }
        // A client that only watches, or cannot type, does not need the holder.
        if self.options.watch || self.stdin.is_none() {
            return;
        }
        let key = &self.options.key;
        if let Some(holder) = self.state.holder.clone() {
            let offer = key.command_hint(&["t takes over"]);
            self.show_notice(&format!("{holder} types now{offer}"));
        } else {
            let offer = key.command_hint(&["t does"]);
            self.show_notice(&format!("nobody types now{offer}"));
        }
    }

    /// Sets the terminal to the size of the local window while this client holds the lease.
    async fn fit_size(&mut self, socket: &mut TerminalSocket) {
        let Some(size) = window_size().filter(|&size| self.state.size != Some(size)) else {
            return;
        };
        let (cols, rows) = (size.cols, size.rows);
        socket
            .send_message(&TerminalClientMessage::Resize { cols, rows })
            .await;
        self.repaint(socket).await;
    }

    async fn handle_signal(
        &mut self,
        event: SignalEvent,
        socket: &mut TerminalSocket,
    ) -> StepOutcome {
        match event {
            SignalEvent::Exit(signal) => return Ok(Some(DetachReason::Signal(signal))),
            SignalEvent::Suspend => self.suspend(socket).await,
            SignalEvent::Resume => {
                self.tty.reapply_raw_mode();
                self.repaint(socket).await;
            }
            SignalEvent::Resized => {
                if let Some(size) = window_size().filter(|_| self.state.input_gate.holds_lease()) {
                    let (cols, rows) = (size.cols, size.rows);
                    socket
                        .send_message(&TerminalClientMessage::Resize { cols, rows })
                        .await;
                }
            }
        }
        Ok(None)
    }

    async fn handle_keys(&mut self, bytes: &[u8], socket: &mut TerminalSocket) -> StepOutcome {
        if std::mem::take(&mut self.state.notice_covers) {
            self.repaint(socket).await;
        }
        for action in self.keys.parse(bytes) {
            match action {
                KeyAction::Type(keys) => self.send_input(keys, socket).await,
                KeyAction::Detach => {
                    let end = self.wait_for_lease(socket).await?;
                    return Ok(Some(end.unwrap_or(DetachReason::Detached)));
                }
                KeyAction::TakeOver => self.request_lease(true, socket).await,
                KeyAction::HandBack => {
                    if let Some(end) = self.wait_for_lease(socket).await? {
                        return Ok(Some(end));
                    }
                    self.state.input_gate.release();
                    socket.send_message(&TerminalClientMessage::HandBack).await;
                }
                KeyAction::Repaint => {
                    self.repaint(socket).await;
                }
                KeyAction::Suspend => {
                    if let Some(end) = self.wait_for_lease(socket).await? {
                        return Ok(Some(end));
                    }
                    self.suspend(socket).await;
                }
                KeyAction::Help => self.help(),
            }
        }
        Ok(None)
    }

    async fn send_input(&mut self, keys: Vec<u8>, socket: &mut TerminalSocket) {
        if keys.is_empty() {
            return;
        }
        let dropped = match self.state.input_gate.input(keys) {
            InputAction::Send(keys) if socket.send_keys(keys.clone()).await => 0,
            // For the next connection.
            InputAction::Send(keys) => self.state.input_gate.buffer(&keys),
            InputAction::Buffered { dropped: left_out } => left_out,
            InputAction::ReadOnly => return self.notify_read_only(),
        };
        if dropped > 0 {
            self.show_notice(&unsent_message("nobody takes them".to_owned(), dropped));
        }
    }

    fn notify_read_only(&mut self) {
        let offer = self.options.key.command_hint(&["t takes over", "d leaves"]);
        let who = self.state.holder.as_deref().unwrap_or("nobody");
        self.show_notice(&format!("you only watch, {who} types{offer}"));
    }

    /// Waits briefly for the lease that buffered keys need: keys typed before detaching are sent.
    async fn wait_for_lease(&mut self, socket: &mut TerminalSocket) -> StepOutcome {
        let limit = Instant::now() + Duration::from_millis(LEASE_WAIT_MS);
        while self.state.input_gate.has_pending_input() {
            // A broken connection is handled by the caller.
            let Ok(Ok(event)) = timeout_at(limit, socket.next()).await else {
                break;
            };
            if let Some(end) = self.handle_socket_event(event, socket).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    async fn suspend(&mut self, socket: &mut TerminalSocket) {
        let wants_lease = self.state.input_gate.wants_lease();
        if wants_lease {
            socket.send_message(&TerminalClientMessage::HandBack).await;
        }
        self.tty.restore();
        crate::print_note("stopped; `fg` goes on");
        stop_self();
        self.tty.enter();
        if wants_lease {
            self.request_lease(false, socket).await;
        }
        self.repaint(socket).await;
    }

    fn help(&mut self) {
        let key = self.options.key.name();
        self.show_notice(&format!(
            "{key} then: d detach, t take over, h hand back, r redraw, z suspend, {key} types it"
        ));
    }

    async fn repaint(&mut self, socket: &mut TerminalSocket) {
        if !self.tty.is_terminal() {
            // A repaint replaces output that is left out; a pipe gets all of the output.
            return;
        }
        self.state.repaint_pending = socket.send_message(&TerminalClientMessage::Repaint).await;
    }

    /// Shows a message to the user, over a repaint that is pending.
    fn show_notice(&mut self, message: &str) {
        if self.state.repaint_pending {
            self.state.notice = Some(message.to_owned());
            return;
        }
        self.tty.show_notice(message);
        self.state.notice_covers = self.tty.is_terminal();
    }
}

/// A message with the number of buffered keys that were not sent.
fn unsent_message(message: String, keys: usize) -> String {
    if keys == 0 {
        return message;
    }
    format!("{message}; {keys} bytes typed meanwhile were not sent")
}

async fn wait_until(leave_at: Option<(Instant, Instant)>) {
    match leave_at {
        Some((at, _)) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn read(stdin: &mut Option<Stdin>, buffer: &mut [u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.read(buffer).await,
        None => std::future::pending().await,
    }
}
