//! REST on the daemon's unix socket.

use ostler_http::listen::listen;
use ostler_http::rest::{count_in_flight, observe, router};
use tokio::net::UnixListener;

use super::stdio_server::StdioServer;

/// Serves REST until the daemon stops. A pending request prevents the idle exit.
pub(crate) async fn serve(listener: UnixListener, server: StdioServer) {
    let router = count_in_flight(router(server.rest.clone()), server.idle_tracker.count());
    let router = observe(router, &server.rest);
    if let Err(error) = listen(listener, router, server.stop).await {
        tracing::error!(%error, "requests cannot be accepted any more");
    }
}
