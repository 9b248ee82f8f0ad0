//! Extractors for paths and bodies, with errors that contain the position.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use ostler_api::ObjectsOnly;
use ostler_engine::Error;
use serde::de::DeserializeOwned;

use super::caller::RequestCaller;
use super::query;
use super::state::RestState;
use ostler_interface::http::{HttpProblem, encoding_problem};

/// The largest body of a request.
pub const REQUEST_BODY_BYTES: usize = 32 * 1024 * 1024;

/// What is kept of a long text that quotes the body: characters of its beginning.
const QUOTED_HEAD_CHARS: usize = 100;
/// Characters of its end: a list of all fields of a body fits.
const QUOTED_TAIL_CHARS: usize = 1_200;

/// The id in a route's path.
#[derive(Debug)]
pub(super) struct PathId(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpProblem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let to_problem = |rejection: PathRejection| HttpProblem::value(rejection.body_text());
        path.map(|Path(id)| Self(id)).map_err(to_problem)
    }
}

/// The id of an execution in a route's path. One that the caller does not see is unknown, whatever
/// else is wrong with the request: this is checked before body and query.
#[derive(Debug)]
pub(super) struct ExecutionPathId(pub(super) String);

impl FromRequestParts<RestState> for ExecutionPathId {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &RestState) -> Result<Self, HttpProblem> {
        Ok(Self(visible_id(parts, state, |error| error).await?))
    }
}

/// The same for a terminal session.
#[derive(Debug)]
pub(super) struct SessionPathId(pub(super) String);

impl FromRequestParts<RestState> for SessionPathId {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &RestState) -> Result<Self, HttpProblem> {
        Ok(Self(visible_id(parts, state, Error::for_session).await?))
    }
}

async fn visible_id(
    parts: &mut Parts,
    state: &RestState,
    map_error: impl Fn(Error) -> Error,
) -> Result<String, HttpProblem> {
    let RequestCaller(caller) = RequestCaller::from_request_parts(parts, state).await?;
    let PathId(id) = PathId::from_request_parts(parts, state).await?;
    match state.engine.info(&caller, &id) {
        Err(error @ Error::NotFound) => Err(map_error(error).into()),
        // The handler reports any other error.
        Ok(_) | Err(_) => Ok(id),
    }
}

/// The id of a question in a route's path, which the caller must see.
#[derive(Debug)]
pub(super) struct InteractionPathId(pub(super) String);

impl FromRequestParts<RestState> for InteractionPathId {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &RestState) -> Result<Self, HttpProblem> {
        let RequestCaller(caller) = RequestCaller::from_request_parts(parts, state).await?;
        let PathId(id) = PathId::from_request_parts(parts, state).await?;
        state.engine.interaction(&caller, &id)?;
        Ok(Self(id))
    }
}

/// The id of a context in a route's path, which the caller must see.
#[derive(Debug)]
pub(super) struct ContextPathId(pub(super) String);

impl FromRequestParts<RestState> for ContextPathId {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &RestState) -> Result<Self, HttpProblem> {
        let RequestCaller(caller) = RequestCaller::from_request_parts(parts, state).await?;
        let PathId(id) = PathId::from_request_parts(parts, state).await?;
        state.engine.context(&caller, &id)?;
        Ok(Self(id))
    }
}

/// A JSON body; an empty one counts as `{}`.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = HttpProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpProblem> {
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let body = serde_path_to_error::deserialize(ObjectsOnly(&mut json)).map_err(|error| {
            // Where the JSON is malformed, the parser does not know the field.
            let path = error.path().to_string();
            let path = clip(path.trim_end_matches('?').trim_end_matches('.').to_owned());
            let message = clip(with_range(without_position(error.inner())));
            match path.as_str() {
                "" => HttpProblem::value(format!("the body: {message}")),
                path => HttpProblem::value(format!("field '{path}': {message}")),
            }
        })?;
        json.end()
            .map_err(|error| HttpProblem::value(format!("the body: {error}")))?;
        Ok(Self(body))
    }
}

/// No body, for a route that takes none; `{}` counts as none. Anything else is refused: what was
/// meant as an option must not be ignored.
#[derive(Debug)]
pub(super) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = HttpProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpProblem> {
        const ALLOWED: &str = "allowed: no body, or {}; parameters are in the query";
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        if matches!(bytes.trim_ascii(), b"" | b"null") {
            return Ok(Self);
        }
        let problem =
            match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes) {
                Ok(fields) => match fields.keys().next() {
                    None => return Ok(Self),
                    Some(name) => format!("field '{name}': this route takes no fields"),
                },
                Err(error) => format!("the body: {error}"),
            };
        Err(HttpProblem::value(format!("{}; {ALLOWED}", clip(problem))))
    }
}

/// A text that quotes a name or a value of the body, without the middle of a long one: what is
/// allowed is at the end.
fn clip(text: String) -> String {
    let mut starts = text.char_indices().map(|(at, _)| at);
    let (Some(head_end), Some(tail_start)) = (
        starts.nth(QUOTED_HEAD_CHARS),
        starts.nth_back(QUOTED_TAIL_CHARS - 1),
    ) else {
        return text;
    };
    format!("{}…{}", &text[..head_end], &text[tail_start..])
}

/// The problem with a value, without line and column: its path is more useful. Invalid JSON has no
/// path, so there the position stays.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(message) if error.is_data() => message.to_owned(),
        Some(_) | None => text,
    }
}

/// The problem with a number, with the allowed ones instead of the type.
fn with_range(message: String) -> String {
    let ranges = [
        ("u8", "a whole number from 0 to 255"),
        ("u16", "a whole number from 0 to 65535"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("u64", "a whole number, 0 or more"),
        ("usize", "a whole number, 0 or more"),
        ("i32", "a whole number from -2147483648 to 2147483647"),
        ("i64", "a whole number"),
    ];
    let range = ranges.into_iter().find_map(|(name, allowed)| {
        let problem = message.strip_suffix(name)?.strip_suffix(", expected ")?;
        Some(format!("{problem}; allowed: {allowed}"))
    });
    range.unwrap_or(message)
}

/// The largest body of this request, in bytes, where its connection allows less than the routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit(pub(crate) usize);

/// The body as bytes; a query string is one that the handler has extracted.
#[derive(Debug)]
pub(super) struct RawBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = HttpProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpProblem> {
        query::check_unused(&request)?;
        if let Some(problem) = encoding_problem(request.headers()) {
            return Err(HttpProblem::value(problem).with_status(415));
        }
        let limit = request.extensions().get::<BodyLimit>();
        let limit = limit.map_or(REQUEST_BODY_BYTES, |limit| limit.0);
        let bytes = Bytes::from_request(request, state).await;
        bytes
            .map(Self)
            .map_err(|rejection| body_problem(&rejection, limit))
    }
}

fn body_problem(rejection: &BytesRejection, limit: usize) -> HttpProblem {
    let status = rejection.status().as_u16();
    let message = match status {
        413 => format!("the body is too large; allowed: {limit} bytes"),
        _ => rejection.body_text(),
    };
    HttpProblem::value(message).with_status(status)
}
