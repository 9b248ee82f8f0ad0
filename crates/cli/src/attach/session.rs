//! An attached session, from the first connection to the end, across daemon restarts.

use hyper::Method;
use ostler_api::ExecutionBody;
use ostler_model::{Signal, TermSize};
use tokio::io::Stdin;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::input_gate::InputGate;
use super::key_parser::{DetachKey, KeyParser};
use super::signals::{AttachSignals, SignalEvent};
use super::tty::{Tty, is_stdin_terminal};
use crate::client::{DaemonClient, RequestBody, RetryLimit, TerminalSocket, is_daemon_exiting};
use crate::error::{CommandError, CommandResult};
use crate::executions::end::output_exit_code;
use crate::executions::stdin::feed_stdin;
use crate::executions::{ids, refused_hosts};
use crate::missing_output::{LossScope, MissingOutput};
use crate::output::Style;

/// What a shell adds to a signal number for the exit status.
const SIGNAL_EXIT: u8 = 128;

/// How to attach to a session.
#[derive(Debug)]
pub(crate) struct AttachOptions {
    /// The id of the session.
    pub(crate) id: String,
    /// Whether to watch only.
    pub(crate) watch: bool,
    /// Whether to take the writer lease from another client.
    pub(crate) take_over: bool,
    pub(crate) key: DetachKey,
    /// What to show first.
    pub(crate) initial_view: InitialView,
}

/// The first output of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialView {
    /// The screen as it is.
    Screen,
    /// The session's output from its start, for one we have just started.
    Start,
}

impl InitialView {
    /// The output offset to start at; none requests a repaint.
    const fn offset(self) -> Option<u64> {
        match self {
            Self::Screen => None,
            Self::Start => Some(0),
        }
    }
}

/// Why the client detached.
#[derive(Debug)]
pub(super) enum DetachReason {
    Exit(Box<ExecutionBody>),
    Detached,
    /// A signal requested the exit.
    Signal(Signal),
}

/// A session and the local terminal.
#[derive(Debug)]
pub(super) struct AttachSession {
    pub(super) options: AttachOptions,
    pub(super) tty: Tty,
    pub(super) signals: AttachSignals,
    pub(super) keys: KeyParser,
    /// Standard input, if it is a terminal.
    pub(super) stdin: Option<Stdin>,
    /// Tasks that send standard input to the session, if it is not a terminal.
    pub(super) input_tasks: JoinSet<Result<(), CommandError>>,
    pub(super) state: AttachState,
    client: DaemonClient,
}

/// The client's copy of the session's state.
#[derive(Debug, Default)]
pub(super) struct AttachState {
    /// The offset after the last output that was shown.
    pub(super) offset: Option<u64>,
    /// Its terminal size now, and before this client changed it.
    pub(super) size: Option<TermSize>,
    pub(super) original_size: Option<TermSize>,
    /// The holder of the writer lease.
    pub(super) holder: Option<String>,
    /// Whether that is this client.
    pub(super) input_gate: InputGate,
    /// Whether this connection has received the hello message; no input can be sent before.
    pub(super) has_hello: bool,
    /// Whether a requested repaint is pending.
    pub(super) repaint_pending: bool,
    /// The message to be shown once the screen is painted.
    pub(super) notice: Option<String>,
    /// Whether a message covers a part of the screen.
    pub(super) notice_covers: bool,
    /// Whether the next bytes are a repaint.
    pub(super) paint_expected: bool,
    /// When to detach after the end of input: at the first time, unless output is shown before, but
    /// at the second in any case.
    pub(super) leave_at: Option<(Instant, Instant)>,
    /// The number of consecutive broken connections.
    pub(super) attempts: RetryLimit,
    /// Output that was gone when it was to be shown.
    pub(super) missing_output: MissingOutput,
}

/// Attaches until the session ends or the client detaches.
///
/// # Errors
/// When there is no such terminal, no daemon can be reached any more, or standard output cannot
/// be written.
pub(crate) async fn attach(client: DaemonClient, options: AttachOptions) -> CommandResult {
    let mut signals = AttachSignals::install()?;
    let id = options.id.clone();
    let mut attempts = RetryLimit::new();
    let first = connect_with_retry(&client, &options, None, &mut attempts);
    let socket = tokio::select! {
        socket = first => socket,
        signal = wait_for_exit_signal(&mut signals) => return Ok(signal_exit_code(signal)),
    };
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => return Err(ids::suggest(&client, &id, error).await),
    };
    let mut feeding = JoinSet::new();
    if !is_stdin_terminal() && !options.watch {
        // The end of input closes that of a command this client started; other sessions stay open.
        let close = options.initial_view == InitialView::Start;
        feeding.spawn(feed_stdin(client.clone(), id.clone(), close));
    }
    let mut session = AttachSession {
        keys: KeyParser::new(options.key.clone()),
        tty: Tty::open(),
        stdin: is_stdin_terminal().then(tokio::io::stdin),
        input_tasks: feeding,
        state: AttachState {
            offset: options.initial_view.offset(),
            input_gate: InputGate::new(is_stdin_terminal() && !options.watch),
            ..AttachState::default()
        },
        signals,
        options,
        client,
    };
    let reason = session.follow(socket).await;
    match &reason {
        Ok(DetachReason::Exit(_)) => session.tty.close(),
        Ok(DetachReason::Detached | DetachReason::Signal(_)) | Err(_) => session.tty.restore(),
    }
    let lost = session.state.input_gate.discard();
    if lost > 0 {
        crate::print_note(&format!("{lost} bytes typed here last were not sent"));
    }
    match reason? {
        DetachReason::Exit(info) => {
            refused_hosts::report(&session.client, &info).await;
            output_exit_code(&info, session.state.missing_output, LossScope::Retained)
        }
        DetachReason::Detached => {
            crate::print_note(&format!("detached; `ostler attach {id}` comes back"));
            session.check_output_complete().await
        }
        DetachReason::Signal(signal) => {
            crate::print_note(&format!("{id} goes on; `ostler attach {id}` comes back"));
            Ok(signal_exit_code(signal))
        }
    }
}

fn signal_exit_code(signal: Signal) -> u8 {
    SIGNAL_EXIT + u8::try_from(signal.number()).unwrap_or_default()
}

async fn wait_for_exit_signal(signals: &mut AttachSignals) -> Signal {
    loop {
        match signals.next().await {
            SignalEvent::Exit(signal) => return signal,
            SignalEvent::Suspend => super::signals::stop_self(),
            SignalEvent::Resume | SignalEvent::Resized => {}
        }
    }
}

/// Connects; output continues at `offset` after an earlier connection.
async fn connect(
    client: &DaemonClient,
    options: &AttachOptions,
    offset: Option<u64>,
) -> Result<TerminalSocket, CommandError> {
    let offset = offset.or(options.initial_view.offset());
    // A pipe is not a terminal: its reader needs every byte.
    let whole = !Style::is_stdout_terminal();
    let mut rest = format!("/terminal?whole={whole}");
    if let Some(offset) = offset {
        rest.push_str(&format!("&offset={offset}"));
    }
    match client
        .connect_terminal(&ids::path(&options.id, &rest))
        .await
    {
        Ok(socket) => Ok(socket),
        Err(error) => Err(client
            .handshake_error(&ids::path(&options.id, "/screen"), error)
            .await),
    }
}

/// As [`Self::connect`], retried with the next daemon where one dies or is about to end.
async fn connect_with_retry(
    client: &DaemonClient,
    options: &AttachOptions,
    offset: Option<u64>,
    attempts: &mut RetryLimit,
) -> Result<TerminalSocket, CommandError> {
    loop {
        match connect(client, options, offset).await {
            Err(error @ CommandError::Disconnected(_)) => attempts.allow_retry(error)?,
            Err(error) if is_daemon_exiting(&error) => attempts.allow_retry(error)?,
            result => return result,
        }
    }
}

impl AttachSession {
    /// Follows the session across daemon restarts.
    async fn follow(&mut self, mut socket: TerminalSocket) -> Result<DetachReason, CommandError> {
        loop {
            let error = match self.run_connection(&mut socket).await {
                Ok(DetachReason::Exit(info)) => return Ok(DetachReason::Exit(info)),
                Ok(reason) => {
                    self.restore_size(&mut socket).await;
                    socket.close().await;
                    return Ok(reason);
                }
                Err(error @ CommandError::Disconnected(_)) => error,
                Err(error) => return Err(error),
            };
            socket = self.reconnect(error).await?;
        }
    }

    /// Whether all output was shown; the exit code of a client that detaches.
    async fn check_output_complete(&self) -> CommandResult {
        if self.state.missing_output.missing_bytes(LossScope::Retained) > 0 {
            let path = ids::path(&self.options.id, "");
            let info: ExecutionBody = self
                .client
                .call(Method::GET, &path, RequestBody::None)
                .await?;
            self.state
                .missing_output
                .check(LossScope::Retained, &info)?;
        }
        Ok(0)
    }

    /// Reconnects; starts a daemon where none is running.
    async fn reconnect(&mut self, error: CommandError) -> Result<TerminalSocket, CommandError> {
        self.state.input_gate.disconnected();
        (self.state.has_hello, self.state.repaint_pending) = (false, false);
        self.state.attempts.allow_retry(error)?;
        let (offset, attempts) = (self.state.offset, &mut self.state.attempts);
        connect_with_retry(&self.client, &self.options, offset, attempts).await
    }
}
