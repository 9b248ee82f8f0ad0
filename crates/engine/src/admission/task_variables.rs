//! The variables by which the command of a task knows the ids of its project and of itself.

use ostler_model::{ByteString, ExecutionId, Owner};

use super::environment;
use crate::settings::Settings;

/// The ids of a task, for its command. They are no part of the request: an approval is for a
/// request, and each start has another id.
#[derive(Debug, Clone)]
pub(super) struct TaskVariables {
    /// The beginning of the names.
    prefix: String,
    project: Option<String>,
    /// The task that its context names; none is the execution itself.
    task: Option<String>,
}

impl TaskVariables {
    /// Those of a start for this owner; none where it starts no task.
    pub(super) fn new(settings: &Settings, is_task: bool, owner: &Owner) -> Option<Self> {
        is_task.then(|| Self {
            prefix: settings.contexts.environment_prefix.clone(),
            project: owner.project.clone(),
            task: owner.task.clone(),
        })
    }

    /// Sets them in the environment of this execution's command.
    pub(super) fn set(self, id: ExecutionId, env: &mut Vec<(ByteString, ByteString)>) {
        let task = self.task.unwrap_or_else(|| id.to_string());
        for (name, value) in [("PROJECT_ID", self.project), ("TASK_ID", Some(task))] {
            let name = ByteString::from(format!("{}{name}", self.prefix));
            if let Some(value) = value {
                environment::set_variable(env, &name, &ByteString::from(value));
            }
        }
    }
}
