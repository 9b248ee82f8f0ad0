//! What a tool answers, before it is spelled for the protocol.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{Failure, object};

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reply {
    /// Text for the model, within the budget of F3.
    pub(super) blocks: Vec<String>,
    /// The same for programs; only status tools have it (F6).
    pub(super) structured: Option<Value>,
    /// Machine fields of log-bearing tools, `_meta["ostler/result"]`.
    pub(super) fields: Map<String, Value>,
    /// What went wrong; the blocks follow its text.
    pub(super) failure: Option<Failure>,
}

impl Reply {
    /// The answer of a log-bearing tool.
    pub(super) fn text(blocks: Vec<String>, fields: Value) -> Self {
        let fields = object(fields);
        Self {
            blocks,
            fields,
            ..Self::default()
        }
    }

    /// The answer of a status tool: structured, and the same as text.
    pub(super) fn status(body: &impl Serialize) -> Self {
        let value = serde_json::to_value(body).unwrap_or_else(|error| json!(error.to_string()));
        Self {
            blocks: vec![value.to_string()],
            structured: Some(value),
            ..Self::default()
        }
    }

    /// This answer, as an error.
    pub(super) fn failed(self, failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }
}

impl<F: Into<Failure>> From<F> for Reply {
    fn from(failure: F) -> Self {
        Self::default().failed(failure.into())
    }
}
