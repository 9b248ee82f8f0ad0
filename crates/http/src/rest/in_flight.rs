//! Counts requests under way, for a daemon that exits when idle.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::sync::watch;

/// The same routes, counting requests under way in `count` until their response begins. A stream
/// that follows an execution is not counted, as the execution is.
pub fn count_in_flight(router: Router, count: watch::Sender<u64>) -> Router {
    router.layer(middleware::from_fn_with_state(count, track_request))
}

async fn track_request(
    State(count): State<watch::Sender<u64>>,
    request: Request,
    next: Next,
) -> Response {
    count.send_modify(|requests| *requests += 1);
    let _guard = InFlightGuard(count);
    next.run(request).await
}

/// Counts down, also when the request is dropped.
struct InFlightGuard(watch::Sender<u64>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0
            .send_modify(|requests| *requests = requests.saturating_sub(1));
    }
}
