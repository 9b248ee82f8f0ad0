//! The limit of retries after a daemon died. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ostler_model::ErrorCode;

use crate::error::CommandError;

/// The most daemons that may die within [`WINDOW_S`] without a response.
const MAX_DEATHS: usize = 100;
/// The period in which they are counted, in seconds.
const WINDOW_S: u64 = 60;
/// The most consecutive failures to reach or start a daemon.
const MAX_FAILURES: u32 = 3;

/// Counts failures since the last response.
#[derive(Debug, Default)]
pub(crate) struct RetryLimit {
    deaths: VecDeque<Instant>,
    failures: u32,
}

impl RetryLimit {
    /// A limit without failures.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Records a response.
    pub(crate) fn reset(&mut self) {
        self.deaths.clear();
        self.failures = 0;
    }

    /// Records one more failed attempt.
    ///
    /// # Errors
    /// The failure itself, where no retry is useful: it is not the death of a daemon, or there were
    /// too many.
    pub(crate) fn allow_retry(&mut self, error: CommandError) -> Result<(), CommandError> {
        self.allow_retry_at(error, Instant::now())
    }

    fn allow_retry_at(&mut self, error: CommandError, now: Instant) -> Result<(), CommandError> {
        match error {
            CommandError::Disconnected(what) => self.daemon_died(what, now),
            error @ (CommandError::Failure { .. } | CommandError::BrokenPipe) => {
                self.failures += 1;
                if is_daemon_exiting(&error) && self.failures <= MAX_FAILURES {
                    return Ok(());
                }
                Err(error)
            }
        }
    }

    fn daemon_died(&mut self, what: String, now: Instant) -> Result<(), CommandError> {
        let window = Duration::from_secs(WINDOW_S);
        self.deaths
            .retain(|&at| now.saturating_duration_since(at) < window);
        self.deaths.push_back(now);
        if self.deaths.len() <= MAX_DEATHS {
            return Ok(());
        }
        Err(CommandError::daemon(format!(
            "{} daemons died within {WINDOW_S} s without an answer; the last one: {what}",
            self.deaths.len()
        ))
        .with_hint("commands outlive their daemons: `ostler ps -a` lists them"))
    }
}

/// Whether an error means that a daemon is ending or could not be started; the next one may work.
pub(crate) fn is_daemon_exiting(error: &CommandError) -> bool {
    match error {
        CommandError::Failure { code, .. } => *code == ErrorCode::Initialization,
        CommandError::Disconnected(_) | CommandError::BrokenPipe => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn died() -> CommandError {
        CommandError::Disconnected("gone".to_owned())
    }

    #[test]
    fn daemons_may_die_until_there_are_too_many_in_a_minute() {
        let mut attempts = RetryLimit::new();
        let begin = Instant::now();
        let second = |n: usize| begin + Duration::from_millis(700 * n as u64);
        for n in 0..1_000 {
            assert!(
                attempts.allow_retry_at(died(), second(n)).is_ok(),
                "slow deaths"
            );
        }
        attempts.reset();
        for _ in 0..MAX_DEATHS {
            assert!(attempts.allow_retry_at(died(), begin).is_ok());
        }
        let refusal = attempts.allow_retry_at(died(), begin).unwrap_err();
        assert!(
            refusal.to_string().contains("101 daemons died"),
            "{refusal}"
        );
        attempts.reset();
        assert!(attempts.allow_retry_at(died(), begin).is_ok());
    }

    #[test]
    fn failures_to_start_one_are_few_and_other_errors_are_final() {
        let mut attempts = RetryLimit::new();
        for _ in 0..MAX_FAILURES {
            assert!(attempts.allow_retry(CommandError::daemon("no")).is_ok());
        }
        assert!(attempts.allow_retry(CommandError::daemon("no")).is_err());
        attempts.reset();
        assert!(attempts.allow_retry(CommandError::daemon("no")).is_ok());
        assert!(attempts.allow_retry(CommandError::value("bad")).is_err());
        assert!(attempts.allow_retry(CommandError::BrokenPipe).is_err());
    }
}
