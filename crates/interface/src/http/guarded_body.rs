//! Responses that keep a value until they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The same response; `held` is kept until its body is sent.
pub fn hold_until_sent(response: Response, held: impl Send + Unpin + 'static) -> Response {
    response.map(|body| Body::new(GuardedBody { body, _guard: held }))
}

/// A body, and a value that lives as long as it does.
struct GuardedBody<T> {
    body: Body,
    _guard: T,
}

impl<T: Unpin> HttpBody for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
