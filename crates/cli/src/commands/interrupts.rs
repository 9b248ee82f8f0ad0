//! What ctrl-c does while a command runs in the foreground: the first passes SIGINT on, the
//! next asks the command to end, the third kills it. Whatever hangs, the third one returns.

use std::time::{Duration, Instant};

use ostler_model::Signal;
use ostler_server::wire::StopBody;
use tokio::signal::unix;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::{kill, passthrough, stop};
use crate::client::Client;
use crate::error::{CommandError, Outcome};

/// Interrupts further apart than this are not in a row, in seconds: a program that goes on
/// after one, as a debugger does, is not stopped by the next.
const IN_A_ROW_S: u64 = 10;
/// How long the kill of the whole tree may take before we leave, in milliseconds.
const KILL_MS: u64 = 5_000;
/// How long output may take to be shown after the kill, in milliseconds.
const DRAIN_MS: u64 = 1_000;
/// What a shell shows when SIGINT ended a command: 128 + SIGINT.
const EXIT_INTERRUPTED: u8 = 130;
const REASON: &str = "interrupted at the terminal";

/// What one interrupt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The command gets SIGINT.
    Pass,
    /// The command is asked to end, and killed after its grace.
    Stop,
    /// The whole tree is killed.
    Kill,
}

/// Decides by how many came in a row.
#[derive(Debug, Default)]
struct Interrupts {
    count: u32,
    last: Option<Instant>,
}

impl Interrupts {
    fn next(&mut self, now: Instant) -> Action {
        let gap = Duration::from_secs(IN_A_ROW_S);
        let in_a_row = self.last.is_some_and(|last| now - last <= gap);
        self.count = if in_a_row { self.count + 1 } else { 1 };
        self.last = Some(now);
        match self.count {
            1 => Action::Pass,
            2 => Action::Stop,
            _ => Action::Kill,
        }
    }
}

/// Carries out what interrupts ask for, until one of them ends our part.
///
/// # Errors
/// When the daemon does not carry out the kill: the command may run on.
pub(super) async fn carry_out(client: Client, id: String, mut caught: unix::Signal) -> Outcome {
    let mut interrupts = Interrupts::default();
    // None of these is waited for: the daemon may not answer.
    let mut orders = JoinSet::new();
    while caught.recv().await.is_some() {
        let (client, id) = (client.clone(), id.clone());
        match interrupts.next(Instant::now()) {
            Action::Pass => {
                orders.spawn(async move { kill::send(&client, &id, Signal::INT).await });
            }
            Action::Stop => {
                crate::tell(&format!(
                    "stopping {id}; once more within {IN_A_ROW_S} s kills it"
                ));
                orders.spawn(async move {
                    let stopped = stop::stop(&client, &id, &request(false)).await;
                    stopped.map(drop)
                });
            }
            Action::Kill => return end_now(&client, &id).await,
        }
    }
    std::future::pending().await
}

async fn end_now(client: &Client, id: &str) -> Outcome {
    crate::tell(&format!("killing {id}"));
    let limit = Duration::from_millis(KILL_MS);
    let killed = timeout(limit, stop::stop(client, id, &request(true))).await;
    let why = match killed {
        Ok(Ok(info)) => {
            let drained = tokio::time::Instant::now() + Duration::from_millis(DRAIN_MS);
            sleep_until(drained).await;
            return Ok(passthrough::end(&info));
        }
        Ok(Err(error)) => error
            .told()
            .map_or_else(|| error.to_string(), str::to_owned),
        Err(_) => format!("the daemon does not answer within {} s", KILL_MS / 1_000),
    };
    let message = format!("{id} was not killed and may still run: {why}");
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
        let mut interrupts = Interrupts::default();
        let begin = Instant::now();
        let mut at = |seconds| interrupts.next(begin + Duration::from_secs(seconds));
        assert_eq!(at(0), Action::Pass);
        assert_eq!(at(11), Action::Pass);
        assert_eq!(at(12), Action::Stop);
        assert_eq!(at(22), Action::Kill);
        assert_eq!(at(23), Action::Kill);
        assert_eq!(at(60), Action::Pass);
    }
}
