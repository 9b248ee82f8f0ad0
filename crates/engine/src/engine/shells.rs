//! The API of [`Engine`] for shell sessions.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{ByteString, Caller, ShellKind, ShellSession, TermSize};

use super::Engine;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::StartRequest;
use crate::shell::{self, ShellCommand, ShellContext, ShellRun};

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
        shell::start_request(&self.inner.settings, kind, cwd, size, base_env).await
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
        let deadline = shell::deadline(command.timeout);
        let (entry, session) = self.shell(caller, id)?;
        let context = self.shell_context(&entry, &session);
        shell::run(context, caller, command, deadline).await
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
        let deadline = shell::deadline(timeout);
        let (entry, session) = self.shell(caller, id)?;
        shell::wait(self.shell_context(&entry, &session), from, deadline).await
    }

    fn shell_context<'a>(
        &'a self,
        entry: &'a Arc<ExecutionHandle>,
        session: &'a ShellSession,
    ) -> ShellContext<'a> {
        ShellContext {
            core: &self.inner,
            leases: &self.leases,
            run_slots: &self.shell_run_slots,
            screens: &self.screens,
            entry,
            session,
        }
    }

    /// The shell session with this id.
    fn shell(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(Arc<ExecutionHandle>, ShellSession), Error> {
        let entry = self.terminal(caller, id)?;
        match entry.spec.shell.clone() {
            Some(shell) => Ok((entry, shell)),
            None => Err(Error::NoShell { id: entry.id }),
        }
    }
}
