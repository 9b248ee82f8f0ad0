//! What callers can do with a shell session.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::ControlError;
use ostler_model::{ByteString, Caller, Command, ShellKind, ShellSession, StartOptions, TermSize};
use ostler_terminal::shell::shell_launch;
use tokio::time::Instant;

use super::idempotency::{self, PriorInput};
use super::run_slots::ShellRunSlots;
use super::run_state::RunProgress;
use super::runner::ShellRunner;
use super::{ShellCommand, ShellRun, install, script};
use crate::admission::arguments::ArgumentError;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::lease::WriterLeases;
use crate::random_hex::random_hex;
use crate::request::{ClientKind, StartRequest};
use crate::settings::Settings;
use crate::terminal::ScreenCache;
use crate::wait;

/// Longer waits count as unlimited, in seconds: a year.
const FOREVER_S: u64 = 365 * 24 * 60 * 60;

/// A shell session, and what is needed to run a command in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShellContext<'a> {
    pub(crate) core: &'a EngineInner,
    pub(crate) leases: &'a WriterLeases,
    pub(crate) run_slots: &'a Arc<ShellRunSlots>,
    pub(crate) screens: &'a ScreenCache,
    pub(crate) entry: &'a Arc<ExecutionHandle>,
    pub(crate) session: &'a ShellSession,
}

/// A request for an integrated shell in a terminal.
///
/// # Errors
/// [`Error::Storage`] when the integration scripts cannot be written.
pub(crate) async fn start_request(
    settings: &Settings,
    kind: ShellKind,
    cwd: ByteString,
    size: TermSize,
    base_env: Vec<(ByteString, ByteString)>,
) -> Result<StartRequest, Error> {
    let state_dir = settings.state_dir.clone();
    let written = tokio::task::spawn_blocking(move || install::install(&state_dir));
    let scripts = written.await.map_err(|_| Error::Closing)??;
    let session = ShellSession {
        kind,
        nonce: random_hex()?,
    };
    let env = if base_env.is_empty() {
        &settings.base_env
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
        options: StartOptions {
            set_env: launch.set_env,
            pty: Some(size),
            ..StartOptions::default()
        },
        client_kind: ClientKind::Pty,
        shell: Some(session),
        ..StartRequest::new(command, cwd)
    })
}

/// Types a command, and waits until it ended, prompts for input, or the deadline came.
///
/// # Errors
/// See [`Engine::run_in_shell`](crate::Engine::run_in_shell).
pub(crate) async fn run(
    shell: ShellContext<'_>,
    caller: &Caller,
    command: ShellCommand,
    deadline: Instant,
) -> Result<ShellRun, Error> {
    let entry = shell.entry;
    let script = script::check(&command.script)?;
    let lease = command.lease.as_ref();
    // What was typed before is awaited, whoever types now.
    if !command.idempotency.is_some_and(|it| it.is_retry) {
        shell.leases.check(entry.id, lease)?;
    }
    wait::wait_started(entry).await;
    if entry.is_finished() {
        return Err(idempotency::ended_error(entry, command.idempotency));
    }
    let guard = shell.run_slots.acquire(entry.id, &script)?;
    let prompt = guard.prompt();
    let (session, progress, from) =
        match idempotency::check_prior(entry, caller, command.idempotency).await? {
            PriorInput::Sent(at) => {
                let runner = ShellRunner::from_state_at(shell, prompt, at)?;
                let progress = runner.progress_of_typed(&script);
                (runner, progress, at)
            }
            PriorInput::NotSent(once) => {
                let mut runner = ShellRunner::open(shell, prompt).await?;
                loop {
                    runner.wait_for_prompt(deadline).await?;
                    let from = runner.offset();
                    // Before it: a write of another in between counts as a later one.
                    let writes = entry.write_count() + 1;
                    let typed = runner.type_script(caller, &script, lease, once, deadline);
                    match typed.await {
                        Ok(progress) => {
                            guard.set_writes(writes);
                            break (runner, progress, from);
                        }
                        Err(Error::ControlFailed(ControlError::Busy)) => {
                            runner.observe_other_input(deadline).await?;
                        }
                        Err(error) => return Err(error),
                    }
                }
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

/// Continues to wait for a command whose output began at `from`.
///
/// # Errors
/// See [`Engine::wait_in_shell`](crate::Engine::wait_in_shell).
pub(crate) async fn wait(
    shell: ShellContext<'_>,
    from: u64,
    deadline: Instant,
) -> Result<ShellRun, Error> {
    let session = shell.entry.id;
    if from > shell.entry.journal()?.end()? {
        return Err(ArgumentError::Invalid {
            what: format!("the offset {from}"),
            problem: "it is after the end of the output",
        }
        .into());
    }
    let guard = shell.run_slots.acquire(session, "what was begun before")?;
    let runner = ShellRunner::from_offset(shell, guard.prompt(), from).await?;
    let (run, ..) = runner
        .wait(RunProgress::resume(from), from, deadline)
        .await?;
    Ok(run)
}

/// When a wait of this length ends.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(Duration::from_secs(FOREVER_S))
}
