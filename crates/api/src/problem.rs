//! Errors on HTTP: RFC 9457 problem documents.

use ostler_model::ErrorCode;
use serde::{Deserialize, Serialize};

/// An error as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The type: `urn:ostler:error:{code}`.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The error class, for example `ProcessNotFoundError`.
    pub title: Box<str>,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: CodeName,
    /// The problem, for people.
    pub message: String,
    /// How to correct it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The id of the question a person has to answer first, for `ostler approve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<str>>,
    /// Whether the program exists and could not be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spawn_failed: bool,
    /// The id of the request, as in the header `X-Request-Id`, to find it in the daemon's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Box<str>>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// An error code by its stable name, for example `process_not_found`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub struct CodeName(pub ErrorCode);

impl From<CodeName> for &'static str {
    fn from(code: CodeName) -> Self {
        code.0.name()
    }
}

impl TryFrom<String> for CodeName {
    type Error = ostler_model::error_code::UnknownErrorCode;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        ErrorCode::try_from(name).map(Self)
    }
}

impl Problem {
    /// A problem with this code and the HTTP status from the table of codes.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: Option<String>) -> Self {
        let row = code.info();
        Self {
            kind: format!("urn:ostler:error:{}", row.name).into(),
            title: row.class.into(),
            status: row.http,
            code: CodeName(code),
            message: message.into(),
            hint,
            approval: None,
            spawn_failed: false,
            request_id: None,
            retryable: row.retryable,
        }
    }

    /// Invalid input (`value_error`).
    #[must_use]
    pub fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Value, message, None)
    }

    /// The problem with a hint how to correct it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { hint, ..self }
    }

    /// The problem with a more specific HTTP status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}
