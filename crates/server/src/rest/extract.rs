//! Bodies of requests, with errors that say where.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::routes::REQUEST_BODY_BYTES;
use crate::wire::Problem;

/// The id in a route's path.
#[derive(Debug)]
pub(super) struct Id(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let told = |rejection: PathRejection| Problem::value(rejection.body_text());
        path.map(|Path(id)| Self(id)).map_err(told)
    }
}

/// A JSON body; nothing at all counts as `{}`.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Octets(bytes) = Octets::from_request(request, state).await?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let body = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let (path, said) = (error.path().to_string(), without_position(error.inner()));
            match path.as_str() {
                "." => Problem::value(format!("the body: {said}")),
                path => Problem::value(format!("field '{path}': {said}")),
            }
        })?;
        json.end()
            .map_err(|error| Problem::value(format!("the body: {error}")))?;
        Ok(Self(body))
    }
}

/// What is wrong with a value; where it stands is told by its path. Broken JSON has no paths,
/// so there the position stays.
fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.is_data() {
        let end = text.rfind(" at line ").unwrap_or(text.len());
        text.truncate(end);
    }
    text
}

/// The largest body this request may have, in bytes, where its connection allows less than
/// the routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit(pub(crate) usize);

/// A body as it is.
#[derive(Debug)]
pub(super) struct Octets(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Octets {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let limit = request.extensions().get::<BodyLimit>();
        let limit = limit.map_or(REQUEST_BODY_BYTES, |limit| limit.0);
        let bytes = Bytes::from_request(request, state).await;
        bytes.map(Self).map_err(|rejection| told(&rejection, limit))
    }
}

fn told(rejection: &BytesRejection, limit: usize) -> Problem {
    let status = rejection.status().as_u16();
    let message = match status {
        413 => format!("the body is too large; allowed: {limit} bytes"),
        _ => rejection.body_text(),
    };
    Problem::value(message).with_status(status)
}
