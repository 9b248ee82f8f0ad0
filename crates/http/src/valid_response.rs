//! Responses that end with the token of their request.

use std::io;

use axum::body::{Body, HttpBody as _};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use ostler_api::OutputFrame;

use crate::auth::AuthError;
use crate::rest::{EVENT_STREAM, OutputFrameBody};
use crate::tokens::{TokenEnd, TokenValidity};

/// Answers as long as the token is valid: a wait is refused once it is not, and a stream ends. What
/// the request began goes on as when its client is gone. A body of known length is sent as it is.
pub(crate) async fn while_valid(
    answer: impl Future<Output = Response>,
    validity: TokenValidity,
) -> Response {
    let response = tokio::select! {
        biased;
        response = answer => response,
        end = validity.clone().ended() => return AuthError::from(end).response(),
    };
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let ending = Ending::of(&response);
    response.map(|body| body_until(body, validity, ending))
}

/// The body up to the end of the token; then `ending`.
fn body_until(body: Body, validity: TokenValidity, ending: Ending) -> Body {
    let open = Some((body.into_data_stream(), Box::pin(validity.ended())));
    Body::from_stream(stream::unfold(open, move |open| async move {
        let (mut chunks, mut ended) = open?;
        tokio::select! {
            biased;
            end = &mut ended => Some((ending.chunk(end), None)),
            chunk = chunks.next() => Some((chunk?, Some((chunks, ended)))),
        }
    }))
}

/// How a body says that it ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// A comment of server-sent events.
    Comment,
    /// A problem among frames of output.
    ProblemFrame,
    /// By breaking off: what was sent must not be taken for all of it.
    Error,
}

impl Ending {
    fn of(response: &Response) -> Self {
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM.as_bytes())) {
            Self::Comment
        } else if response.extensions().get::<OutputFrameBody>().is_some() {
            Self::ProblemFrame
        } else {
            Self::Error
        }
    }

    /// The last chunk; a chunk before it is whole events, or whole frames.
    fn chunk(self, end: TokenEnd) -> Result<Bytes, axum::Error> {
        match self {
            Self::Comment => Ok(Bytes::from(format!(": {}\n\n", end.as_str()))),
            Self::ProblemFrame => {
                let problem = Box::new(AuthError::from(end).problem().0);
                let frame = OutputFrame::Problem { problem };
                let mut chunk = serde_json::to_vec(&frame).map_err(axum::Error::new)?;
                chunk.push(b'\n');
                Ok(Bytes::from(chunk))
            }
            Self::Error => Err(axum::Error::new(io::Error::other(end.as_str()))),
        }
    }
}
