//! The methods for shell sessions.

use std::time::Duration;

use ostler_engine::{Error, ShellCommand, ShellRun, StartRequest};
use ostler_model::{ByteString, Caller, ShellKind, TermSize};
use ostler_terminal::ShellState;

use super::Engine;

impl Engine {
    /// Builds a request for an integrated shell in a terminal: its program is looked up in
    /// `base_env`'s `PATH`, and the integration scripts are written where it finds them. The caller
    /// may change the request, and starts it.
    ///
    /// # Errors
    /// [`Error::Storage`] when the scripts cannot be written.
    pub async fn shell_request(
        &self,
        kind: ShellKind,
        cwd: ByteString,
        size: TermSize,
        base_env: Vec<(ByteString, ByteString)>,
    ) -> Result<StartRequest, Error> {
        self.0.shell_request(kind, cwd, size, base_env).await
    }

    /// Types a command into a shell session that shows its prompt, and waits until it ended,
    /// prompts for input, or the timeout expired.
    ///
    /// Text that was typed at the prompt and not entered is removed first. A shell that was just
    /// started is given time to show its first prompt. To wait again for a command that went on
    /// after [`ShellEnd::TimedOut`](crate::ShellEnd::TimedOut), or was answered after
    /// [`ShellEnd::Prompt`](crate::ShellEnd::Prompt), use [`Engine::wait_in_shell`]
    /// from [`ShellRun::from`] on; what it has printed meanwhile is read with
    /// [`Engine::read_terminal`] or [`Engine::screen`]. Dropping the future types nothing more and
    /// stops nothing. A command with [`ShellCommand::idempotency`] that was typed before, under any
    /// engine, is not typed again: its end is awaited.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NoTerminal`], [`Error::NoShell`] for a session without
    /// integration, [`Error::ShellBusy`] when it runs another command, [`Error::Leased`],
    /// [`Error::Argument`] for a script that cannot be typed, [`Error::ControlFailed`] when it has
    /// ended, [`Error::TypingUncertain`] where it is unknown whether it was typed before.
    pub async fn run_in_shell(
        &self,
        caller: &Caller,
        id: &str,
        command: ShellCommand,
    ) -> Result<ShellRun, Error> {
        self.0.run_in_shell(caller, id, command).await
    }

    /// Continues to wait for a command in a shell session whose output began at `from_offset`, from
    /// [`ShellRun::from`]; returns at once where it has ended meanwhile.
    ///
    /// # Errors
    /// As [`Engine::run_in_shell`]; [`Error::ShellBusy`] while another call runs a command there.
    pub async fn wait_in_shell(
        &self,
        caller: &Caller,
        id: &str,
        from: u64,
        timeout: Duration,
    ) -> Result<ShellRun, Error> {
        self.0.wait_in_shell(caller, id, from, timeout).await
    }

    /// The state of its shell, derived from the shell integration's markers.
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub async fn shell_state(&self, caller: &Caller, id: &str) -> Result<ShellState, Error> {
        self.0.shell_state(caller, id).await
    }
}
