//! Limits the number of requests of one principal under way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use ostler_model::ErrorCode;
use ostler_model::owner::Principal;
use parking_lot::Mutex;

use crate::listen::CONNECTIONS;
use ostler_interface::http::HttpProblem;

/// The most requests of one principal under way at once, streams and terminals included, so that
/// others find a free connection.
pub const REQUESTS_PER_PRINCIPAL: usize = CONNECTIONS / 4;

/// The requests under way, by principal.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<Principal, usize>>);

/// A request under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    counts: Arc<InFlight>,
    principal: Principal,
}

impl InFlight {
    /// Counts a request.
    ///
    /// # Errors
    /// When the principal has reached the limit.
    pub(crate) fn start_request(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<RequestGuard, HttpProblem> {
        let mut counts = self.0.lock();
        let count = counts.entry(principal.clone()).or_default();
        if *count >= REQUESTS_PER_PRINCIPAL {
            let message = format!(
                "{REQUESTS_PER_PRINCIPAL} requests of this token are under way, all it may have at once"
            );
            return Err(HttpProblem::new(ErrorCode::QuotaExceeded, message, None)
                .with_hint("wait for answers, or end streams"));
        }
        *count += 1;
        Ok(RequestGuard {
            counts: Arc::clone(self),
            principal: principal.clone(),
        })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.counts.0.lock().entry(self.principal.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_has_a_share_and_what_ended_does_not_count() {
        let all = Arc::new(InFlight::default());
        let (one, other) = (Principal::unix(1), Principal::unix(2));
        let mut requests = (0..REQUESTS_PER_PRINCIPAL)
            .map(|_| all.start_request(&one))
            .collect::<Result<Vec<_>, _>>()
            .expect("room");
        assert!(all.start_request(&one).is_err());
        assert!(all.start_request(&other).is_ok());
        drop(requests.pop());
        requests.push(all.start_request(&one).expect("room again"));
        drop(requests);
        assert!(all.0.lock().is_empty());
    }
}
