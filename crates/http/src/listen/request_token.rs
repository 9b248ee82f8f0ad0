//! The token of the request that a connection serves. A response ends with its token when it is
//! read; a connection whose client does not read it ends soon after, so that it keeps neither its
//! descriptor nor its part of what the principal may have at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::tokens::{TokenEnd, TokenValidity};

/// How long a client may take to read the end of a response after that of its token, in
/// milliseconds.
const READ_END_MS: u64 = 1_000;

/// Where a request tells its connection how long its token is valid; an extension of the requests.
#[derive(Debug, Clone)]
pub(crate) struct RequestToken(Arc<watch::Sender<Option<TokenValidity>>>);

/// A request with a token, until this is dropped.
#[derive(Debug)]
pub(crate) struct RequestTokenGuard(RequestToken);

/// What a connection knows of its requests.
#[derive(Debug)]
pub(super) struct ConnectionToken(watch::Receiver<Option<TokenValidity>>);

/// The two ends.
pub(super) fn request_token() -> (RequestToken, ConnectionToken) {
    let (sender, receiver) = watch::channel(None);
    (RequestToken(Arc::new(sender)), ConnectionToken(receiver))
}

impl RequestToken {
    /// A request begins; a connection has one at a time.
    pub(crate) fn begin(self, validity: TokenValidity) -> RequestTokenGuard {
        self.0.send_replace(Some(validity));
        RequestTokenGuard(self)
    }
}

impl Drop for RequestTokenGuard {
    fn drop(&mut self) {
        self.0.0.send_replace(None);
    }
}

impl ConnectionToken {
    /// Waits until a request outlasts its token by more than [`READ_END_MS`].
    pub(super) async fn outlasted(mut self) -> TokenEnd {
        loop {
            let validity = self.0.borrow_and_update().clone();
            let ended = async {
                match validity {
                    Some(validity) => validity.ended().await,
                    None => std::future::pending().await,
                }
            };
            let end = tokio::select! {
                end = ended => end,
                Ok(()) = self.0.changed() => continue,
            };
            let limit = Duration::from_millis(READ_END_MS);
            if timeout(limit, self.0.changed()).await.is_err() {
                return end;
            }
        }
    }
}
