//! Tasks: executions as the container engine's API names them. A task's id is that of its
//! execution.

use ostler_model::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::context::ContextChoice;

/// The default time limit of a task, in seconds.
const TIMEOUT_S: u64 = 3_600;

/// `POST /api/v1/projects/{id}/execute`: starts a program without a shell, or a command template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteBody {
    /// The program; absent with a template, or the program of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ByteString>,
    /// Its arguments; none with a template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ByteString>,
    /// The template's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The values of the template's parameters: texts, numbers, true or false.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Whether it gets a terminal, so that it can be asked and answered.
    #[serde(default = "yes")]
    pub interactive: bool,
    /// The time limit, in seconds.
    #[serde(default = "timeout")]
    pub timeout: u64,
    /// The absolute working directory; absent means the project, where that is a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<ByteString>,
    /// The context that it runs in: `true` for that of the project, which is created where there is
    /// none, or an id. Without `cwd` it works in the context's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextChoice>,
}

const fn yes() -> bool {
    true
}

const fn timeout() -> u64 {
    TIMEOUT_S
}

/// The answer to a start, with status 202.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStartedBody {
    /// The id of the execution.
    pub task_id: String,
    /// What happens to it: [`TaskEventBody`](crate::TaskEventBody) as server-sent events or over a
    /// WebSocket.
    pub events_url: String,
}

/// `POST /api/v1/tasks/{id}/input`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskInputBody {
    /// One line, without its end.
    pub input: ByteString,
}

/// The answer to `POST /api/v1/tasks/{id}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancelBody {
    /// The id of the execution.
    pub task_id: String,
    /// Whether this request ended it; false where it had ended already.
    pub cancelled: bool,
    /// Its status.
    pub status: String,
    /// Its exit code, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// OS pids that survived it; normally absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
}
