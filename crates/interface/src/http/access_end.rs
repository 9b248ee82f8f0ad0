//! The end of the access that a request was made with.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

type AccessEndFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells when the token of a request is revoked or expires: an extension of requests that have one, for
/// work that goes on after its connection is lost.
#[derive(Clone)]
pub struct AccessEnd(Arc<dyn Fn() -> AccessEndFuture + Send + Sync>);

impl AccessEnd {
    /// From a function whose future resolves at the end.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        wait: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move || Box::pin(wait())))
    }

    /// Waits for the end; returns at once when it is over.
    pub async fn wait(&self) {
        (self.0)().await;
    }
}

impl fmt::Debug for AccessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessEnd").finish_non_exhaustive()
    }
}
