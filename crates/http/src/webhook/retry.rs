//! When a delivery is tried again.

use std::time::Duration;

/// The most attempts of one delivery.
const ATTEMPTS: u32 = 8;
/// The longest delay after the first attempt; each further one doubles it.
const FIRST_MS: u64 = 1_000;
/// The longest delay of all, also of those that a receiver asks for.
const LONGEST_MS: u64 = 120_000;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The receiver answered with this status, and asked for this delay.
    Status(u16, Option<Duration>),
    /// There was no answer.
    NoAnswer,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// It is delivered.
    Delivered,
    /// It is given up.
    Failed,
    /// It is tried again after this time.
    RetryAfter(Duration),
}

/// Decides after an attempt, counted from 1. `random` is from 0 to 1: delays are random up to twice
/// as much each time, so that those who failed together do not come back together.
pub(super) fn next_step(attempt: u32, outcome: AttemptOutcome, random: f64) -> NextStep {
    let requested = match outcome {
        AttemptOutcome::Status(200..=299, _) => return NextStep::Delivered,
        // Too slow, too early, too many, or the receiver's own fault.
        AttemptOutcome::Status(408 | 425 | 429 | 500..=599, requested) => requested,
        AttemptOutcome::Status(..) => return NextStep::Failed,
        AttemptOutcome::NoAnswer => None,
    };
    if attempt >= ATTEMPTS {
        return NextStep::Failed;
    }
    let longest = Duration::from_millis(LONGEST_MS);
    let doubled = FIRST_MS.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let backoff = Duration::from_millis(doubled.min(LONGEST_MS)).mul_f64(random.clamp(0.0, 1.0));
    NextStep::RetryAfter(requested.unwrap_or(backoff).max(backoff).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delivery_ends_and_delays_are_bounded() {
        for outcome in [
            AttemptOutcome::NoAnswer,
            AttemptOutcome::Status(503, None),
            AttemptOutcome::Status(429, Some(Duration::from_secs(86_400))),
        ] {
            for random in [0.0, 0.5, 1.0] {
                let steps = (1..=ATTEMPTS).map(|attempt| next_step(attempt, outcome, random));
                let steps: Vec<_> = steps.collect();
                assert_eq!(steps.last(), Some(&NextStep::Failed));
                for (step, attempt) in steps.iter().zip(1..ATTEMPTS) {
                    let NextStep::RetryAfter(delay) = step else {
                        panic!("attempt {attempt}: {step:?}");
                    };
                    assert!(*delay <= Duration::from_millis(LONGEST_MS));
                }
            }
        }
    }

    #[test]
    fn the_answer_decides() {
        let after = |status| next_step(1, AttemptOutcome::Status(status, None), 1.0);
        for status in [200, 201, 204] {
            assert_eq!(after(status), NextStep::Delivered);
        }
        for status in [301, 302, 307, 400, 401, 403, 404, 410, 422] {
            assert_eq!(after(status), NextStep::Failed, "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504] {
            let second = NextStep::RetryAfter(Duration::from_secs(1));
            assert_eq!(after(status), second, "{status}");
        }
        let requested = AttemptOutcome::Status(503, Some(Duration::from_secs(7)));
        let seven = NextStep::RetryAfter(Duration::from_secs(7));
        assert_eq!(next_step(1, requested, 0.3), seven);
    }
}
