//! How many requests are under way, for a daemon that ends when nobody asks anything.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::sync::watch;

/// The same routes, counting requests under way in `count` until their answer begins. A
/// stream that follows an execution counts as that execution does.
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
