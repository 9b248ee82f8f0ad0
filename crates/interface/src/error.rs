//! The one conversion from every error to `{code, message, hint, retryable}`.

use std::borrow::Cow;
use std::io::ErrorKind;

use ostler_engine::error::OPEN_FILES_HINT;
use ostler_engine::{Error, is_out_of_fds, plain_text};
use ostler_journal::{Pattern, PatternError, ReadError, WriteError};
use ostler_model::ErrorCode;
use ostler_render::TimeError;
use serde_json::{Map, Value, json};

use crate::params::ArgumentsError;

/// The most characters of a message: quotas name their holders, errors quote the input.
const MESSAGE_CHARS: usize = 4_000;

/// A request that could not be carried out, as REST and MCP report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The stable code, which determines the HTTP status and the JSON-RPC error code.
    pub code: ErrorCode,
    /// The problem, where it is, and what is allowed.
    pub message: String,
    /// How to correct it.
    pub hint: Option<String>,
    /// Id of the question a person has to answer first.
    pub approval: Option<String>,
    /// Whether an execution was created whose program exists and could not be executed.
    pub spawn_failed: bool,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl ApiError {
    /// An error without a hint.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            approval: None,
            spawn_failed: false,
            retryable: code.info().retryable,
        }
    }

    /// An invalid value.
    #[must_use]
    pub fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Value, message)
    }

    /// The error with a hint how to correct it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The message, truncated where quoted input made it huge.
    #[must_use]
    pub fn message(&self) -> Cow<'_, str> {
        bounded(&self.message)
    }

    /// `{code}: message`, with the hint below it.
    #[must_use]
    pub fn text(&self) -> String {
        let (code, message) = (self.code, self.message());
        match &self.hint {
            Some(hint) => format!("{code}: {message}\nhint: {hint}"),
            None => format!("{code}: {message}"),
        }
    }

    /// `{code, retryable, rpc}` as JSON.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let row = self.code.info();
        let mut fields =
            object(json!({"code": row.name, "retryable": self.retryable, "rpc": row.rpc}));
        if let Some(approval) = &self.approval {
            fields.insert("approval".to_owned(), approval.as_str().into());
        }
        fields
    }
}

/// A message, truncated where quoted input made it huge.
pub(crate) fn bounded(message: &str) -> Cow<'_, str> {
    match message.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &message[..end])),
        None => Cow::Borrowed(message),
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        if let Error::Output(error) = error {
            return error.into();
        }
        let approval = if let Error::ApprovalRequired { interaction, .. } = &error {
            Some(interaction.clone())
        } else {
            None
        };
        let code = if let Error::ClearOutput(refused) = &error {
            clear_error_code(refused)
        } else {
            error.code()
        };
        Self {
            code,
            message: error.to_string(),
            hint: error.hint(),
            approval,
            spawn_failed: error.is_exec_failure(),
            retryable: error.is_retryable(),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        let message = error.to_string();
        if is_out_of_fds(&error) {
            return Self::new(ErrorCode::QuotaExceeded, message).with_hint(OPEN_FILES_HINT);
        }
        match error {
            ReadError::Budget(_) => Self::value(message)
                .with_hint("use a pattern without look-around and back-references"),
            ReadError::Missing { .. } | ReadError::Io { .. } | ReadError::Version { .. } => {
                Self::new(ErrorCode::OutputRetrieval, message)
            }
        }
    }
}

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> Self {
        Self::new(clear_error_code(&error), error.to_string())
    }
}

/// The code of an error of clearing output: a full disk is one of its own.
fn clear_error_code(error: &WriteError) -> ErrorCode {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    if let WriteError::Io { source, .. } = error
        && full.contains(&source.kind())
    {
        return ErrorCode::Storage;
    }
    ErrorCode::OutputClear
}

impl From<ArgumentsError> for ApiError {
    fn from(error: ArgumentsError) -> Self {
        Self::value(error.to_string())
    }
}

impl From<TimeError> for ApiError {
    fn from(error: TimeError) -> Self {
        Self::value(error.to_string())
    }
}

/// The fields of a JSON object; empty for any other value.
pub fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value {
        fields
    } else {
        Map::new()
    }
}

/// The pattern of the parameter `grep`: a line matches as it is and as it reads.
///
/// # Errors
/// When it is invalid.
pub fn parse_grep(given: &str) -> Result<Pattern, ApiError> {
    let pattern = Pattern::new(given).map_err(|error| bad_pattern("grep", given, &error))?;
    Ok(pattern.with_plain_text(plain_text))
}

/// An invalid pattern, with the parameter that held it.
pub fn bad_pattern(name: &str, given: &str, error: &PatternError) -> ApiError {
    let PatternError { message, position } = error;
    ApiError::value(format!(
        "parameter '{name}' is '{given}': {message} at position {position}; \
         allowed: a Perl-style expression"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_that_refuses_a_clear_has_the_code_of_full_disks() {
        for (kind, code) in [
            (ErrorKind::StorageFull, ErrorCode::Storage),
            (ErrorKind::QuotaExceeded, ErrorCode::Storage),
            (ErrorKind::PermissionDenied, ErrorCode::OutputClear),
        ] {
            let refused = || WriteError::Io {
                action: "write",
                file: "output.floor".to_owned(),
                source: kind.into(),
            };
            assert_eq!(ApiError::from(refused()).code, code);
            assert_eq!(ApiError::from(Error::ClearOutput(refused())).code, code);
        }
    }
}
