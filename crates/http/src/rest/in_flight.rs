//! Counts requests under way, for a daemon that exits when idle.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use futures_util::StreamExt as _;
use tokio::sync::watch;

/// An extension of a response whose body counts as a request under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedBody;

/// The same routes, counting requests under way in `count` until their response begins; the feed of
/// events until it ends. A stream that follows an execution is not counted, as the execution is.
pub fn count_in_flight(router: Router, count: watch::Sender<u64>) -> Router {
    router.layer(middleware::from_fn_with_state(count, track_request))
}

async fn track_request(
    State(count): State<watch::Sender<u64>>,
    request: Request,
    next: Next,
) -> Response {
    count.send_modify(|requests| *requests += 1);
    let guard = InFlightGuard(count);
    let response = next.run(request).await;
    if response.extensions().get::<CountedBody>().is_none() {
        return response;
    }
    response.map(|body| {
        let body = body.into_data_stream().inspect(move |_| {
            let _held_until_the_body_is_dropped = &guard;
        });
        Body::from_stream(body)
    })
}

/// Counts down, also when the request is dropped.
struct InFlightGuard(watch::Sender<u64>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0
            .send_modify(|requests| *requests = requests.saturating_sub(1));
    }
}
