//! Contexts.

use std::time::Duration;

use ostler_api::{ContextBody, ContextRequestBody};
use ostler_engine::{ContextInfo, ContextRequest, ContextState};
use ostler_model::duration::as_millis;

/// A context.
pub fn context_body(context: &ContextInfo) -> ContextBody {
    let problem = match &context.state {
        ContextState::Failed { problem } => Some(problem.clone()),
        ContextState::Creating
        | ContextState::Idle { .. }
        | ContextState::Busy { .. }
        | ContextState::Ending { .. }
        | ContextState::Ended { .. } => None,
    };
    ContextBody {
        id: context.id.clone(),
        project: context.project.clone(),
        task: context.task.clone(),
        session: context.owner.session.as_ref().map(ToString::to_string),
        directory: context.directory.clone(),
        directory_created: context.is_directory_created,
        status: context.state.as_str().to_owned(),
        problem,
        executions: context.executions.iter().map(|id| id.short()).collect(),
        variables: context.variables.clone(),
        secrets: context.secrets.clone(),
        isolation: context.level,
        limits: context.limits,
        timeout_ms: as_millis(context.timeout),
        idle_timeout_ms: as_millis(context.idle_timeout),
        created_at: context.created_at,
        used_at: context.used_at,
        ends_at: context.ends_at,
    }
}

/// The request that a body describes.
pub fn context_request(body: ContextRequestBody) -> ContextRequest {
    ContextRequest {
        project: body.project,
        task: body.task,
        directory: body.cwd,
        idle_timeout: body.idle_timeout_ms.map(Duration::from_millis),
        options: body.options,
    }
}
