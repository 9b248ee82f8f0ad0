//! Events of tasks, as the container engine's document names them.

use ostler_model::{Cursor, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use super::page::GapBody;

/// One event of `GET /api/v1/tasks/{id}/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskEventBody {
    /// The id of the execution.
    pub task_id: String,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The position after it: `cursor` of a request for what follows.
    pub cursor: Cursor,
    /// What happened.
    #[serde(flatten)]
    pub event: TaskEvent,
}

/// What happened to a task. The last event is `error` or `completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskEvent {
    /// It printed.
    Output {
        /// Where to.
        stream: StreamName,
        /// The text: complete characters, with U+FFFD for bytes that are none.
        data: String,
    },
    /// Output that is gone.
    Gap {
        /// The range of the output.
        gap: GapBody,
    },
    /// It waits for an answer: `POST /api/v1/tasks/{id}/input`.
    ConfirmationRequired {
        /// The question.
        message: String,
        /// The answers it offers; empty where any will do.
        options: Vec<String>,
        /// The meaning of an empty answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<String>,
        /// Whether the answer must not be shown.
        secret: bool,
    },
    /// It did not end by itself, or cannot be followed.
    Error {
        /// What went wrong.
        message: String,
        /// `TIMEOUT`, `OUT_OF_MEMORY`, `EXECUTION_ERROR` (it could not be started, or its end is
        /// unknown), or `OUTPUT_ERROR` (its output cannot be read).
        code: String,
    },
    /// It ended.
    Completed {
        /// Its exit code, or 128 and the number of the signal that ended it.
        exit_code: i32,
        /// The time from its start to its end, in seconds.
        duration: f64,
    },
}

impl TaskEvent {
    /// Whether nothing follows it.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Error { .. } | Self::Completed { .. })
    }
}
