//! What a container engine refuses, and what it does not answer.

use std::path::Path;
use std::time::Duration;

use bollard::errors::Error as ClientError;
use ostler_backend::ContainerError;

/// How much of an engine's message is kept, in bytes.
const MESSAGE_BYTES: usize = 1_024;
/// HTTP: what the request names does not exist.
const NOT_FOUND: u16 = 404;
/// HTTP: the name is in use, or the state forbids it.
const CONFLICT: u16 = 409;
/// What the messages of a full disk contain: `ENOSPC`, `EDQUOT`.
const FULL_DISK: [&str; 2] = ["no space left on device", "disk quota exceeded"];

/// A request to a container engine that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EngineError {
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The connection could not be made, or was closed.
    #[error("{0}")]
    Disconnected(String),
    /// What the request names does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The name is in use, or the state forbids it.
    #[error("{0}")]
    Conflict(String),
    /// Its disk is full.
    #[error("{0}")]
    NoSpace(String),
    /// Everything else that it refuses.
    #[error("{0}")]
    Refused(String),
    /// Its answer is not what the API says.
    #[error("its answer is not understood: {0}")]
    Malformed(String),
}

impl EngineError {
    /// The error of a request that had this much time.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library has twenty ways to not understand an answer"
    )]
    pub(crate) fn of(error: &ClientError, limit: Duration) -> Self {
        match error {
            ClientError::DockerResponseServerError {
                status_code,
                message,
            } => Self::of_answer(*status_code, message),
            ClientError::RequestTimeoutError => Self::TimedOut(limit),
            ClientError::DockerStreamError { error } => Self::of_answer(0, error),
            ClientError::SocketNotFoundError(_) => {
                Self::Disconnected("its socket is gone".to_owned())
            }
            ClientError::HyperLegacyError { err } => Self::disconnected(err),
            ClientError::HyperResponseError { err } => Self::disconnected(err),
            ClientError::IOError { err } => Self::disconnected(err),
            _ => Self::Malformed(with_causes(error)),
        }
    }

    /// The error of an answer with this status.
    pub(super) fn of_answer(status: u16, message: &str) -> Self {
        let message = shortened(message);
        let lower = message.to_lowercase();
        if FULL_DISK.iter().any(|text| lower.contains(text)) {
            return Self::NoSpace(message);
        }
        match status {
            NOT_FOUND => Self::NotFound(message),
            CONFLICT => Self::Conflict(message),
            _ => Self::Refused(message),
        }
    }

    /// The error of a connection that was lost or could not be made.
    pub(super) fn disconnected(error: &dyn std::error::Error) -> Self {
        Self::Disconnected(with_causes(error))
    }

    /// The error of a start, where what is not found has one of its own.
    pub(crate) fn or_absent(self, socket: &Path, absent: ContainerError) -> ContainerError {
        if matches!(self, Self::NotFound(_)) {
            absent
        } else {
            self.into_container_error(socket)
        }
    }

    /// Whether the engine cannot be reached, whatever is requested.
    pub(crate) const fn is_disconnected(&self) -> bool {
        matches!(self, Self::Disconnected(_))
    }

    /// As the error of a start.
    pub(crate) fn into_container_error(self, socket: &Path) -> ContainerError {
        match self {
            Self::TimedOut(_) | Self::Disconnected(_) => ContainerError::EngineUnresponsive {
                socket: socket.display().to_string(),
                reason: self.to_string(),
            },
            Self::NoSpace(message) => ContainerError::EngineStorage(message),
            Self::NotFound(message) | Self::Conflict(message) | Self::Refused(message) => {
                ContainerError::Refused(message)
            }
            Self::Malformed(_) => ContainerError::Refused(self.to_string()),
        }
    }
}

/// The text of an error and of what caused it, each part once.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    shortened(&text)
}

/// The text without its surrounding space, no longer than is kept.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(MESSAGE_BYTES);
    if end < text.len() {
        format!("{}…", &text[..end])
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_status(status_code: u16, message: &str) -> EngineError {
        let error = ClientError::DockerResponseServerError {
            status_code,
            message: message.to_owned(),
        };
        EngineError::of(&error, Duration::from_secs(1))
    }

    #[test]
    fn statuses_and_texts_are_told_apart() {
        let text = "said".to_owned();
        assert_eq!(of_status(404, "said"), EngineError::NotFound(text.clone()));
        assert_eq!(of_status(409, "said"), EngineError::Conflict(text.clone()));
        assert_eq!(of_status(500, " said\n"), EngineError::Refused(text));
        let full = of_status(500, "mkdir /x: No space left on device");
        assert!(matches!(full, EngineError::NoSpace(_)));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = "é".repeat(MESSAGE_BYTES);
        let cut = shortened(&long);
        assert!(cut.len() <= MESSAGE_BYTES + "…".len() && cut.ends_with('…'));
    }
}
