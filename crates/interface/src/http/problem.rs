//! Errors as HTTP responses: problem documents (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ostler_api::Problem;
use ostler_engine::InteractionError;
use ostler_model::ErrorCode;

use crate::error::{ApiError, bounded};

/// A [`Problem`] that is sent as a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProblem(pub Problem);

/// The problem of a response, as an extension of it, for who completes it.
#[derive(Debug, Clone)]
pub struct SentProblem(pub Box<Problem>);

impl HttpProblem {
    /// A problem of this code, with its HTTP status.
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: Option<String>) -> Self {
        Self(Problem::new(code, bounded(&message.into()), hint))
    }

    /// Invalid input.
    pub fn value(message: impl Into<String>) -> Self {
        Self(Problem::value(bounded(&message.into())))
    }

    /// The same problem, with advice.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self(self.0.with_hint(hint))
    }

    /// The same problem under another HTTP status.
    pub fn with_status(self, status: u16) -> Self {
        Self(self.0.with_status(status))
    }
}

impl From<ApiError> for Problem {
    fn from(failure: ApiError) -> Self {
        Self {
            approval: failure.approval.clone().map(Into::into),
            spawn_failed: failure.spawn_failed,
            retryable: failure.retryable,
            ..Self::new(failure.code, failure.message(), failure.hint.clone())
        }
    }
}

impl From<ApiError> for HttpProblem {
    fn from(failure: ApiError) -> Self {
        Self(failure.into())
    }
}

impl From<ostler_engine::Error> for HttpProblem {
    fn from(error: ostler_engine::Error) -> Self {
        let status = specific_status(&error);
        let problem = Self::from(ApiError::from(error));
        match status {
            Some(status) => problem.with_status(status.as_u16()),
            None => problem,
        }
    }
}

/// The status of an error that its code alone does not tell.
const fn specific_status(error: &ostler_engine::Error) -> Option<StatusCode> {
    let ostler_engine::Error::Interaction(error) = error else {
        return None;
    };
    match error {
        InteractionError::NotFound => Some(StatusCode::NOT_FOUND),
        InteractionError::Question { .. } | InteractionError::Value { .. } => {
            Some(StatusCode::UNPROCESSABLE_ENTITY)
        }
        InteractionError::Closed { .. }
        | InteractionError::BeingAnswered { .. }
        | InteractionError::OnlyPerson { .. }
        | InteractionError::TooMany { .. }
        | InteractionError::Ended { .. }
        | InteractionError::PartiallyWritten { .. }
        | InteractionError::NotDelivered { .. } => None,
    }
}

impl From<ostler_journal::ReadError> for HttpProblem {
    fn from(error: ostler_journal::ReadError) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = problem.code;
        let sent = SentProblem(Box::new(problem.clone()));
        let mut response = (status, Json(problem)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(code);
        response.extensions_mut().insert(sent);
        response
    }
}
