//! REST on the daemon's socket.

use ostler_server::listen::listen;
use ostler_server::rest::{RestState, counted, router};
use tokio::net::UnixListener;

use super::fronts::Fronts;

/// Serves REST until the daemon stops. A request keeps it from ending for idleness.
pub(crate) async fn serve(listener: UnixListener, shared: Fronts) {
    let state = RestState::new(shared.engine, shared.stop.clone());
    let router = counted(router(state), shared.presence.count());
    if let Err(error) = listen(listener, router, shared.stop).await {
        tracing::error!(%error, "requests cannot be accepted any more");
    }
}
