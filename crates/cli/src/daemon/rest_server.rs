//! REST on the daemon's unix socket.

use ostler_http::listen::listen;
use ostler_http::rest::{RestState, count_in_flight, router};
use tokio::net::UnixListener;

use super::stdio_server::StdioServer;

/// Serves REST until the daemon stops. A pending request prevents the idle exit.
pub(crate) async fn serve(listener: UnixListener, server: StdioServer) {
    let state = RestState::new(server.engine, server.stop.clone()).with_history(server.history);
    let router = count_in_flight(router(state), server.idle_tracker.count());
    if let Err(error) = listen(listener, router, server.stop).await {
        tracing::error!(%error, "requests cannot be accepted any more");
    }
}
