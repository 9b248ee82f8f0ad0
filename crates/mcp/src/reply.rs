//! The result of a tool, independent of the protocol.

use ostler_engine::{ExecutionInfo, Interaction, QueueWait};
use serde::Serialize;
use serde_json::{Map, Value, json};

use ostler_interface::convert::queue_wait_body;
use ostler_interface::error::{ApiError, object};

/// The key in `_meta` of machine-readable fields of outputs and errors.
pub(super) const RESULT_KEY: &str = "ostler/result";

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ToolReply {
    /// Text for the model, within the budget of a reply.
    pub(super) blocks: Vec<String>,
    /// The same as JSON; only status tools have it.
    pub(super) structured: Option<Value>,
    /// Machine-readable fields of tools that return output, `_meta["ostler/result"]`.
    pub(super) fields: Map<String, Value>,
    /// The error, whose text precedes the blocks.
    pub(super) failure: Option<ApiError>,
    /// Whether the blocks describe the failure already.
    pub(super) is_worded: bool,
    /// Links to more of it, after the blocks.
    pub(super) links: Vec<ResourceLink>,
}

/// A resource that shows more than the answer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceLink {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) mime_type: &'static str,
}

impl ToolReply {
    /// The result of a tool that returns output.
    pub(super) fn text(blocks: Vec<String>, fields: Value) -> Self {
        let fields = object(fields);
        Self {
            blocks,
            fields,
            ..Self::default()
        }
    }

    /// The result of a status tool: structured, and the same as text.
    pub(super) fn status(body: &impl Serialize) -> Self {
        let value = serde_json::to_value(body).unwrap_or_else(|error| json!(error.to_string()));
        Self {
            blocks: vec![value.to_string()],
            structured: Some(value),
            ..Self::default()
        }
    }

    /// A failure described by a tool's own text.
    pub(super) fn worded(text: String, failure: ApiError) -> Self {
        Self {
            blocks: vec![text],
            failure: Some(failure),
            is_worded: true,
            ..Self::default()
        }
    }

    /// This result, with how long its start waited for a slot within the quota.
    pub(super) fn with_queue_wait(mut self, queued: Option<QueueWait>) -> Self {
        let Some(queued) = queued.map(queue_wait_body) else {
            return self;
        };
        self.blocks.push(format!("[{queued}]"));
        self.fields.insert("queued".to_owned(), json!(queued));
        self
    }

    /// This result, with why the wait for what the call started failed.
    pub(super) fn with_wait_problem(mut self, problem: Option<String>) -> Self {
        let note =
            problem.map(|it| format!("[note: the wait failed, the command was not ended: {it}]"));
        self.blocks.extend(note);
        self
    }

    /// This result, as an error.
    pub(super) fn with_failure(self, failure: ApiError) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }
}

impl<F: Into<ApiError>> From<F> for ToolReply {
    fn from(failure: F) -> Self {
        Self::default().with_failure(failure.into())
    }
}

/// Why a tool has no result of its own.
#[derive(Debug)]
pub(super) enum ToolInterrupt {
    /// The request could not be carried out.
    Failed(ApiError),
    /// It takes long: this execution continues as a task.
    BecameTask(Box<BecameTask>),
    /// The client is to ask the person and repeat the call with the answer (MCP revision
    /// 2026-07-28).
    ElicitNeeded(Box<ElicitNeeded>),
}

/// A call that became a task.
#[derive(Debug)]
pub(super) struct BecameTask {
    /// The execution that it represents.
    pub(super) info: ExecutionInfo,
    /// Whether its prompts are questions to the person at the client.
    pub(super) asks_person: bool,
}

/// A question for the person at the client.
#[derive(Debug)]
pub(super) struct ElicitNeeded {
    /// The question, which is open.
    pub(super) interaction: Interaction,
    /// The problem with the previous answer.
    pub(super) complaint: Option<String>,
}

impl<F: Into<ApiError>> From<F> for ToolInterrupt {
    fn from(failure: F) -> Self {
        Self::Failed(failure.into())
    }
}
