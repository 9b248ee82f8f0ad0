//! What every face asks of a shell session.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Caller, Command, ShellKind, ShellSession, TermSize, Text};
use ostler_terminal::shell::launch;
use tokio::time::Instant;

use super::busy::Running;
use super::decide::Progress;
use super::once::{self, Before};
use super::session::Session;
use super::{ShellCommand, ShellRun, install, script};
use crate::driver::wait;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::error::Error;
use crate::request::{Face, StartRequest};

/// The longest wait that is told from one without an end, in seconds: a year.
const FOREVER_S: u64 = 365 * 24 * 60 * 60;

impl Engine {
    /// A request for an integrated shell in a terminal: its program looked up in `base_env`'s
    /// `PATH`, its scripts written where it finds them. To be changed further and started.
    ///
    /// # Errors
    /// [`Error::Storage`] when the scripts cannot be written.
    pub async fn shell_request(
        &self,
        kind: ShellKind,
        cwd: Text,
        size: TermSize,
        base_env: Vec<(Text, Text)>,
    ) -> Result<StartRequest, Error> {
        let state_dir = self.core.settings.state_dir.clone();
        let written = tokio::task::spawn_blocking(move || install::install(&state_dir));
        let scripts = written.await.map_err(|_| Error::Closing)??;
        let session = ShellSession {
            kind,
            nonce: install::nonce()?,
        };
        let front = if base_env.is_empty() {
            &self.core.settings.base_env
        } else {
            &base_env
        };
        let launch = launch(&session, &scripts, front);
        let command = Command::Argv {
            program: Text::from(kind.as_str()),
            args: launch.args,
        };
        Ok(StartRequest {
            base_env,
            set_env: launch.set_env,
            pty: Some(size),
            face: Face::Pty,
            shell: Some(session),
            ..StartRequest::new(command, cwd)
        })
    }

    /// Types a command into a shell session that shows its prompt, and waits until it ended,
    /// asks for something, or the time ran out.
    ///
    /// Text that was typed at the prompt and not entered is removed first. A shell that was
    /// just started is given time to show its first prompt. A command that
    /// went on after [`ShellEnd::AtMost`](super::ShellEnd::AtMost), or was answered after
    /// [`ShellEnd::Prompt`](super::ShellEnd::Prompt), is
    /// waited for again by [`Engine::wait_in_shell`] from [`ShellRun::from`] on; what it has
    /// printed meanwhile is read with [`Engine::read_terminal`] or seen on
    /// [`Engine::screen`]. Dropping the future types nothing more and stops nothing. A command
    /// with [`ShellCommand::once`] that was typed before, under whatever engine, is not typed
    /// again: its end is waited for.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NoTerminal`], [`Error::NoShell`] for a session
    /// without integration, [`Error::ShellBusy`] when it runs something else,
    /// [`Error::Leased`], [`Error::Argument`] for a script that cannot be
    /// typed, [`Error::Control`] when it has ended, [`Error::TypedUnknown`] where it may have
    /// been typed before and nobody knows.
    pub async fn run_in_shell(
        &self,
        caller: &Caller,
        id: &str,
        command: ShellCommand,
    ) -> Result<ShellRun, Error> {
        let deadline = deadline(command.at_most);
        let (entry, shell) = self.shell(caller, id)?;
        let script = script::check(&command.script)?;
        let lease = command.lease.as_ref();
        entry.leases.check(entry.id, lease)?;
        wait::started(&entry).await;
        if entry.is_finished() {
            return Err(once::ended(&entry, command.once));
        }
        let running = Running::take(&entry, &script)?;
        let (session, progress, from) = match once::before(&entry, caller, command.once).await? {
            Before::Typed(at) => {
                let session = Session::open(&self.core, &entry, &shell, Some(at))?;
                let progress = session.was_typed(&script);
                (session, progress, at)
            }
            Before::Untyped(once) => {
                let mut session = Session::open(&self.core, &entry, &shell, None)?;
                session.ready(deadline).await?;
                let from = session.offset();
                let typing = session.type_script(caller, &script, (lease, once));
                let progress = typing.await?;
                (session, progress, from)
            }
        };
        let (run, mut session, progress) = session.wait(progress, from, deadline).await?;
        if progress.is_refused() {
            session.clear(caller).await?;
        } else if progress.is_back() {
            running.over_before(session.offset());
        }
        Ok(run)
    }

    /// Waits on for a command in a shell session whose output began at `from`, as
    /// [`ShellRun::from`] told; answers at once where it has ended meanwhile.
    ///
    /// # Errors
    /// As [`Engine::run_in_shell`]; [`Error::ShellBusy`] while another call runs one there.
    pub async fn wait_in_shell(
        &self,
        caller: &Caller,
        id: &str,
        from: u64,
        at_most: Duration,
    ) -> Result<ShellRun, Error> {
        let deadline = deadline(at_most);
        let (entry, shell) = self.shell(caller, id)?;
        let _running = Running::take(&entry, "what was begun before")?;
        let session = Session::from(&self.core, &entry, &shell, from)?;
        let (run, ..) = session
            .wait(Progress::resumed(from), from, deadline)
            .await?;
        Ok(run)
    }

    /// The shell session a caller means.
    fn shell(&self, caller: &Caller, id: &str) -> Result<(Arc<Entry>, ShellSession), Error> {
        let entry = self.terminal(caller, id)?;
        match entry.spec.shell.clone() {
            Some(shell) => Ok((entry, shell)),
            None => Err(Error::NoShell { id: entry.id }),
        }
    }
}

fn deadline(at_most: Duration) -> Instant {
    Instant::now() + at_most.min(Duration::from_secs(FOREVER_S))
}
