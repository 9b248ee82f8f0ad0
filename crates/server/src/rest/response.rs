//! Answers and problems.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ostler_model::ErrorCode;

use crate::error::ApiError;
use crate::wire::Problem;

/// What a route answers.
pub(super) type RestResult<T> = Result<T, Problem>;

impl From<ApiError> for Problem {
    fn from(failure: ApiError) -> Self {
        Self {
            approval: failure.approval.clone().map(Into::into),
            ..Self::new(failure.code, failure.message(), failure.hint.clone())
        }
    }
}

impl From<ostler_engine::Error> for Problem {
    fn from(error: ostler_engine::Error) -> Self {
        ApiError::from(error).into()
    }
}

impl From<ostler_journal::ReadError> for Problem {
    fn from(error: ostler_journal::ReadError) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.code;
        let mut response = (status, Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(code);
        response
    }
}

/// No such route.
pub(super) async fn no_route() -> Problem {
    Problem::value("there is no such route").with_status(404)
}

/// A route that does not know this method.
pub(super) async fn no_method() -> Problem {
    Problem::value("the route does not know this method").with_status(405)
}

/// It runs, and only what has ended can be cleaned.
pub(super) fn still_running_problem(id: &str) -> Problem {
    let hint = Some("stop it first".to_owned());
    Problem::new(
        ErrorCode::ProcessClean,
        format!("{id} is still running"),
        hint,
    )
}
