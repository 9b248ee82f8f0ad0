//! Ctrl-C while a command runs in the foreground: the first passes SIGINT on, the second requests a
//! stop, the third kills the command. Whatever hangs, the third one returns.

use std::time::{Duration, Instant};

use ostler_api::StopBody;
use ostler_model::Signal;
use tokio::signal::unix;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::{kill, stop};
use crate::client::DaemonClient;
use crate::error::{CommandError, CommandResult};
use crate::executions::end;

/// Interrupts further apart than this many seconds are not counted together: a program that
/// continues after one, as a debugger does, is not stopped by the next.
const IN_A_ROW_S: u64 = 10;
/// The longest wait for the kill of the process tree, in milliseconds.
const KILL_MS: u64 = 5_000;
/// The longest wait for output after the kill, in milliseconds.
const DRAIN_MS: u64 = 1_000;
/// The exit code of a shell if SIGINT ended a command: 128 + SIGINT.
const EXIT_INTERRUPTED: u8 = 130;
const REASON: &str = "interrupted at the terminal";

/// The effect of one interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptAction {
    /// Passes SIGINT to the command.
    Pass,
    /// Stops the command, with a grace period.
    Stop,
    /// Kills the whole process tree.
    Kill,
}

/// Counts consecutive interrupts.
#[derive(Debug, Default)]
struct InterruptCounter {
    count: u32,
    last: Option<Instant>,
}

impl InterruptCounter {
    fn on_interrupt(&mut self, now: Instant) -> InterruptAction {
        let gap = Duration::from_secs(IN_A_ROW_S);
        let in_a_row = self.last.is_some_and(|last| now - last <= gap);
        self.count = if in_a_row { self.count + 1 } else { 1 };
        self.last = Some(now);
        match self.count {
            1 => InterruptAction::Pass,
            2 => InterruptAction::Stop,
            _ => InterruptAction::Kill,
        }
    }
}

/// Carries out interrupts until one of them ends this client.
///
/// # Errors
/// When the daemon does not carry out the kill: the command may still run.
pub(super) async fn handle_interrupts(
    client: DaemonClient,
    id: String,
    mut signals: unix::Signal,
) -> CommandResult {
    let mut counter = InterruptCounter::default();
    // None of these tasks is waited for: the daemon may not respond.
    let mut tasks = JoinSet::new();
    while signals.recv().await.is_some() {
        let (client, id) = (client.clone(), id.clone());
        match counter.on_interrupt(Instant::now()) {
            InterruptAction::Pass => {
                tasks.spawn(async move { kill::send(&client, &id, Signal::INT).await });
            }
            InterruptAction::Stop => {
                crate::print_note(&format!(
                    "stopping {id}; once more within {IN_A_ROW_S} s kills it"
                ));
                tasks.spawn(async move {
                    let result = stop::stop(&client, &id, &request(false)).await;
                    result.map(drop)
                });
            }
            InterruptAction::Kill => return kill_now(&client, &id).await,
        }
    }
    std::future::pending().await
}

async fn kill_now(client: &DaemonClient, id: &str) -> CommandResult {
    crate::print_note(&format!("killing {id}"));
    let limit = Duration::from_millis(KILL_MS);
    let result = timeout(limit, stop::stop(client, id, &request(true))).await;
    let reason = match result {
        Ok(Ok(info)) => {
            let deadline = tokio::time::Instant::now() + Duration::from_millis(DRAIN_MS);
            sleep_until(deadline).await;
            return Ok(end::report_end(&info));
        }
        Ok(Err(error)) => error
            .message()
            .map_or_else(|| error.to_string(), str::to_owned),
        Err(_) => format!("the daemon does not answer within {} s", KILL_MS / 1_000),
    };
    let message = format!("{id} was not killed and may still run: {reason}");
    Err(CommandError::daemon(message)
        .with_hint(format!("`ostler stop --force {id}` ends it"))
        .with_exit(EXIT_INTERRUPTED))
}

fn request(force: bool) -> StopBody {
    StopBody {
        force,
        reason: Some(REASON.to_owned()),
        ..StopBody::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_a_row_kill_and_a_pause_begins_anew() {
        let mut interrupts = InterruptCounter::default();
        let begin = Instant::now();
        let mut at = |seconds| interrupts.on_interrupt(begin + Duration::from_secs(seconds));
        assert_eq!(at(0), InterruptAction::Pass);
        assert_eq!(at(11), InterruptAction::Pass);
        assert_eq!(at(12), InterruptAction::Stop);
        assert_eq!(at(22), InterruptAction::Kill);
        assert_eq!(at(23), InterruptAction::Kill);
        assert_eq!(at(60), InterruptAction::Pass);
    }
}
