//! What every route works with.

use super::response::RestResult;
use ostler_engine::Engine;
use ostler_model::Timestamp;
use tokio_util::sync::CancellationToken;

/// What every route works with; cheap to clone.
#[derive(Debug, Clone)]
pub struct RestState {
    pub(super) engine: Engine,
    pub(super) started_at: Timestamp,
    pub(super) shutdown: CancellationToken,
}

impl RestState {
    /// Routes over `engine`. `shutdown` is cancelled when a client asks for the end; whoever
    /// cancels it, waits and followers then answer at once that the daemon leaves, so that
    /// connections drain. Give [`listen`](crate::listen::listen) the same token.
    #[must_use]
    pub fn new(engine: Engine, shutdown: CancellationToken) -> Self {
        Self {
            engine,
            started_at: Timestamp::now(),
            shutdown,
        }
    }

    /// `future`, unless it would have to wait and the daemon leaves.
    pub(super) async fn unless_shutting_down<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> RestResult<T> {
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = self.shutdown.cancelled() => Err(ostler_engine::Error::Closing.into()),
        }
    }
}
