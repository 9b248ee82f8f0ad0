//! The facade's methods for shell sessions.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{ByteString, Caller, Command, ShellKind, ShellSession, TermSize};
use ostler_terminal::shell::shell_launch;
use tokio::time::Instant;

use super::idempotency::{self, PriorInput};
use super::run_lock::RunGuard;
use super::run_state::RunProgress;
use super::runner::ShellRunner;
use super::{ShellCommand, ShellRun, install, script};
use crate::driver::wait;
use crate::engine::Engine;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::{ClientKind, StartRequest};

/// Waits longer than this count as endless, in seconds: a year.
const FOREVER_S: u64 = 365 * 24 * 60 * 60;

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
        let state_dir = self.inner.settings.state_dir.clone();
        let written = tokio::task::spawn_blocking(move || install::install(&state_dir));
        let scripts = written.await.map_err(|_| Error::Closing)??;
        let session = ShellSession {
            kind,
            nonce: install::nonce()?,
        };
        let env = if base_env.is_empty() {
            &self.inner.settings.base_env
        } else {
            &base_env
        };
        let launch = shell_launch(&session, &scripts, env);
        let command = Command::Argv {
            program: ByteString::from(kind.as_str()),
            args: launch.args,
        };
        Ok(StartRequest {
            base_env,
            set_env: launch.set_env,
            pty: Some(size),
            client_kind: ClientKind::Pty,
            shell: Some(session),
            ..StartRequest::new(command, cwd)
        })
    }

    /// Types a command into a shell session that shows its prompt, and waits until it ended,
    /// prompts for input, or the timeout expired.
    ///
    /// Text that was typed at the prompt and not entered is removed first. A shell that was just
    /// started is given time to show its first prompt. To wait again for a command that went on
    /// after [`ShellEnd::TimedOut`](super::ShellEnd::TimedOut), or was answered after
    /// [`ShellEnd::Prompt`](super::ShellEnd::Prompt), use [`Engine::wait_in_shell`]
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
        let deadline = deadline(command.timeout);
        let (entry, shell) = self.shell(caller, id)?;
        let script = script::check(&command.script)?;
        let lease = command.lease.as_ref();
        entry.leases.check(entry.id, lease)?;
        wait::wait_started(&entry).await;
        if entry.is_finished() {
            return Err(idempotency::ended_error(&entry, command.idempotency));
        }
        let guard = RunGuard::acquire(&entry, &script)?;
        let (session, progress, from) =
            match idempotency::check_prior(&entry, caller, command.idempotency).await? {
                PriorInput::Sent(at) => {
                    let runner = ShellRunner::open(&self.inner, &entry, &shell, Some(at))?;
                    let progress = runner.progress_of_typed(&script);
                    (runner, progress, at)
                }
                PriorInput::NotSent(once) => {
                    let mut runner = ShellRunner::open(&self.inner, &entry, &shell, None)?;
                    runner.wait_for_prompt(deadline).await?;
                    let from = runner.offset();
                    let write = runner.type_script(caller, &script, (lease, once));
                    let progress = write.await?;
                    (runner, progress, from)
                }
            };
        let (run, mut runner, progress) = session.wait(progress, from, deadline).await?;
        if progress.is_refused() {
            runner.clear(caller).await?;
        } else if progress.is_prompt_back() {
            guard.set_free_before(runner.offset());
        }
        Ok(run)
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
        let deadline = deadline(timeout);
        let (entry, shell) = self.shell(caller, id)?;
        let _guard = RunGuard::acquire(&entry, "what was begun before")?;
        let runner = ShellRunner::from_offset(&self.inner, &entry, &shell, from)?;
        let (run, ..) = runner
            .wait(RunProgress::resume(from), from, deadline)
            .await?;
        Ok(run)
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

fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(Duration::from_secs(FOREVER_S))
}
