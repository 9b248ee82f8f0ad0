//! How many requests of one principal are answered a second: a token bucket for each, kept as the
//! time at which it will be full again (the generic cell rate algorithm, ITU-T I.371).

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};
use ostler_interface::http::HttpProblem;
use ostler_model::ErrorCode;
use ostler_model::owner::Principal;
use parking_lot::Mutex;

/// The most principals whose buckets are not full at once; there are fewer tokens.
const PRINCIPALS: usize = 4_096;

/// The limit of every principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests a second, in the long run.
    pub per_second: NonZeroU32,
    /// Requests at once, after a time without any.
    pub burst: NonZeroU32,
}

/// The buckets that are not full.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    limit: RateLimit,
    full_at: Mutex<HashMap<Principal, Instant>>,
}

/// A request that is refused, and how long its principal has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateExceeded {
    limit: RateLimit,
    wait: Duration,
}

impl RateLimit {
    /// The time in which a bucket gains a request.
    fn interval(self) -> Duration {
        Duration::from_secs(1) / self.per_second.get()
    }

    /// Takes a request from the bucket that is full at `full_at`, and returns when it will be.
    ///
    /// # Errors
    /// How long to wait for the next request.
    fn take(self, full_at: Option<Instant>, now: Instant) -> Result<Instant, Duration> {
        let full_at = full_at.map_or(now, |full_at| full_at.max(now)) + self.interval();
        let missing = full_at.saturating_duration_since(now);
        let wait = missing.saturating_sub(self.interval() * self.burst.get());
        if wait.is_zero() {
            Ok(full_at)
        } else {
            Err(wait)
        }
    }
}

impl RateLimiter {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            full_at: Mutex::default(),
        }
    }

    /// Counts a request of this principal; a refused one does not count.
    ///
    /// # Errors
    /// When there were too many lately.
    pub(crate) fn count(&self, principal: &Principal, now: Instant) -> Result<(), RateExceeded> {
        let limit = self.limit;
        let exceeded = |wait| RateExceeded { limit, wait };
        let mut full_at = self.full_at.lock();
        if full_at.len() >= PRINCIPALS && !full_at.contains_key(principal) {
            // A full bucket is as good as none.
            full_at.retain(|_, full_at| *full_at > now);
            if full_at.len() >= PRINCIPALS {
                return Err(exceeded(limit.interval()));
            }
        }
        let taken = limit.take(full_at.get(principal).copied(), now);
        full_at.insert(principal.clone(), taken.map_err(exceeded)?);
        Ok(())
    }
}

impl RateExceeded {
    /// The HTTP response, with the seconds to wait, rounded up.
    pub(crate) fn response(self) -> Response {
        let seconds = self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0);
        let RateLimit { per_second, burst } = self.limit;
        let message = format!(
            "too many requests of this token's principal; allowed: {per_second} a second, {burst} \
             at once"
        );
        let problem = HttpProblem::new(ErrorCode::QuotaExceeded, message, None)
            .with_hint(format!("try again in {seconds} s"));
        let mut response = problem.into_response();
        let after = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, after);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(per_second: u32, burst: u32) -> RateLimit {
        let at_least_one = |number| NonZeroU32::new(number).expect("from 1");
        RateLimit {
            per_second: at_least_one(per_second),
            burst: at_least_one(burst),
        }
    }

    #[test]
    fn no_time_has_more_requests_than_the_burst_and_its_share() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let limit = limit(random.u32(1..2_000), random.u32(1..50));
            let limiter = RateLimiter::new(limit);
            let principal = Principal::unix(1);
            let (start, mut now) = (Instant::now(), Instant::now());
            let mut taken: Vec<Instant> = Vec::new();
            for _ in 0..300 {
                now += limit.interval().mul_f64(random.f64() * 2.0);
                match limiter.count(&principal, now) {
                    Ok(()) => taken.push(now),
                    Err(RateExceeded { wait, .. }) => {
                        let early = wait.saturating_sub(Duration::from_nanos(1));
                        assert!(limiter.count(&principal, now + early).is_err());
                        now += wait;
                        assert_eq!(limiter.count(&principal, now), Ok(()), "after the wait");
                        taken.push(now);
                    }
                }
            }
            for (first, from) in taken.iter().enumerate() {
                for (last, to) in taken.iter().enumerate().skip(first) {
                    let share = (*to - *from).as_nanos() / limit.interval().as_nanos();
                    let count = (last - first + 1) as u128;
                    assert!(count <= share + u128::from(limit.burst.get()), "{limit:?}");
                }
            }
            assert!(now > start && !taken.is_empty());
        }
    }

    #[test]
    fn one_principal_does_not_limit_another_and_full_buckets_are_dropped() {
        let limiter = RateLimiter::new(limit(1, 2));
        let now = Instant::now();
        let (one, other) = (Principal::unix(1), Principal::unix(2));
        assert!(limiter.count(&one, now).is_ok() && limiter.count(&one, now).is_ok());
        let wait = Duration::from_secs(1);
        let exceeded = RateExceeded {
            limit: limit(1, 2),
            wait,
        };
        assert_eq!(limiter.count(&one, now), Err(exceeded));
        assert!(limiter.count(&other, now).is_ok());
        for number in 0..PRINCIPALS {
            let number = u32::try_from(number).expect("few");
            let _counted = limiter.count(&Principal::unix(number), now);
        }
        assert_eq!(limiter.full_at.lock().len(), PRINCIPALS);
        let new = Principal::unix(u32::MAX);
        assert!(limiter.count(&new, now).is_err(), "the table is full");
        assert!(limiter.count(&new, now + 2 * wait).is_ok());
        assert_eq!(limiter.full_at.lock().len(), 1);
    }

    #[test]
    fn the_wait_is_told_in_whole_seconds() {
        for (wait, seconds) in [(1, "1"), (1_000, "1"), (1_001, "2")] {
            let exceeded = RateExceeded {
                limit: limit(1, 1),
                wait: Duration::from_millis(wait),
            };
            let response = exceeded.response();
            assert_eq!(response.status().as_u16(), 429);
            assert_eq!(response.headers()[RETRY_AFTER], seconds);
        }
    }
}
