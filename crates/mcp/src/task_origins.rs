//! The calls that tasks came from, by execution, so that a task's result is rendered as its call
//! asked for.

use std::collections::HashMap;

use ostler_model::ExecutionId;
use parking_lot::Mutex;
use rmcp::model::JsonObject;

/// Calls remembered with their arguments; tasks of older ones are rendered with defaults.
const MAX_REMEMBERED: usize = 512;
/// Arguments longer than this are not remembered.
const ARGUMENTS_BYTES: usize = 16 * 1024;

/// Calls that became tasks, as long as this daemon runs.
#[derive(Debug, Default)]
pub(super) struct TaskOrigins(Mutex<HashMap<ExecutionId, TaskOrigin>>);

/// The call a task came from.
#[derive(Debug, Clone)]
pub(super) struct TaskOrigin {
    /// The name of its tool.
    pub(super) tool: &'static str,
    /// None where they were too large to keep.
    pub(super) arguments: Option<JsonObject>,
    /// Whether prompts become questions to the person.
    pub(super) asks_person: bool,
}

impl TaskOrigin {
    pub(super) fn new(tool: &'static str, arguments: JsonObject, asks_person: bool) -> Self {
        let size = serde_json::to_vec(&arguments).map_or(usize::MAX, |bytes| bytes.len());
        Self {
            tool,
            arguments: (size <= ARGUMENTS_BYTES).then_some(arguments),
            asks_person,
        }
    }
}

impl TaskOrigins {
    pub(super) fn remember(&self, id: ExecutionId, origin: TaskOrigin) {
        let mut origins = self.0.lock();
        if origins.len() >= MAX_REMEMBERED
            && let Some(oldest) = origins.keys().min().copied()
        {
            origins.remove(&oldest);
        }
        origins.insert(id, origin);
    }

    pub(super) fn get(&self, id: ExecutionId) -> Option<TaskOrigin> {
        self.0.lock().get(&id).cloned()
    }
}
