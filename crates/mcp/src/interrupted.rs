//! Calls interrupted by the end of the daemon: which of them can be repeated, and the answer to the
//! others.

use ostler_engine::Engine;
use ostler_model::{ErrorCode, ExecutionId};
use rmcp::model::{CallToolResult, JsonObject};

use super::client::ConnectedClient;
use super::options::Structured;
use super::reply::ToolReply;
use super::to_rmcp;
use super::tools::{self, ToolDefinition};
use ostler_interface::error::ApiError;

/// Tools that start one command: with its id known, repeating the start means waiting for it.
const START_TOOLS: &[&str] = &[
    "exec",
    "command_execute",
    "command_bg_start",
    "execute_shell",
    "pty_start",
];
/// Actions of multi-action tools that change nothing, or are idempotent.
const REPEATABLE: &[(&str, &[&str])] = &[
    (
        "service",
        &[
            "start", "ensure", "up", "list", "status", "logs", "why", "define", "forget",
        ],
    ),
    ("workspace", &["changes", "diff"]),
];
/// Tools that show an execution's status, in the order in which they are recommended.
const STATUS_TOOLS: &[&str] = &["process", "command_ps_detail", "list_processes", "pty_list"];

/// Why the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptCause {
    /// It died, and its successor answers.
    Restart,
    /// It was shut down, and answers before it exits.
    Shutdown,
}

/// The effect of carrying a call out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatEffect {
    /// The same as once.
    Idempotent,
    /// It types, signals, stops or removes a second time.
    Repeats,
}

/// The effect of carrying out this call twice.
pub(super) fn repeat_effect(tool: &ToolDefinition, arguments: &JsonObject) -> RepeatEffect {
    if tool.hints.read_only || START_TOOLS.contains(&tool.name) {
        return RepeatEffect::Idempotent;
    }
    let action = arguments.get("action").and_then(|it| it.as_str());
    let repeatable = REPEATABLE.iter().find(|(name, _)| *name == tool.name);
    match (repeatable, action) {
        (Some((_, actions)), Some(action)) if actions.contains(&action) => RepeatEffect::Idempotent,
        (Some(_) | None, Some(_) | None) => RepeatEffect::Repeats,
    }
}

/// The error of a call that cannot be completed.
pub(super) fn interrupted_failure(
    engine: &Engine,
    client: &ConnectedClient,
    cause: InterruptCause,
    tool: Option<&ToolDefinition>,
    arguments: &JsonObject,
    started: &[ExecutionId],
) -> ApiError {
    let reason = match cause {
        InterruptCause::Restart => "the daemon was restarted while this call ran",
        InterruptCause::Shutdown => "the daemon was shut down while this call ran",
    };
    let status_tool = STATUS_TOOLS
        .iter()
        .find(|name| client.context.tools.offers(name));
    let status_hint = status_tool.map_or_else(String::new, |name| format!("look with {name}"));
    let infos = started
        .iter()
        .filter_map(|id| engine.info(&client.caller, &id.short()).ok());
    let still_there: Vec<String> = infos
        .map(|info| {
            let id = info.id.short();
            if info.state.is_finished() {
                format!("process {id} has ended")
            } else {
                format!("process {id} goes on")
            }
        })
        .collect();
    let is_repeatable =
        tool.is_none_or(|tool| repeat_effect(tool, arguments) == RepeatEffect::Idempotent);
    let (outcome, hint) = if !still_there.is_empty() {
        (still_there.join(", "), status_hint)
    } else if is_repeatable {
        let outcome = "nothing was started or changed".to_owned();
        (
            outcome,
            "call again: the next call starts a daemon".to_owned(),
        )
    } else {
        (
            "whether it took effect is not known".to_owned(),
            status_hint,
        )
    };
    let failure = ApiError::new(ErrorCode::Internal, format!("{reason}; {outcome}"));
    if hint.is_empty() {
        failure
    } else {
        failure.with_hint(hint)
    }
}

/// The same error as the result of a call.
pub(super) fn interrupted_result(
    engine: &Engine,
    client: &ConnectedClient,
    cause: InterruptCause,
    name: &str,
    arguments: &JsonObject,
    started: &[ExecutionId],
) -> CallToolResult {
    let tool = tools::find_tool(client.context.tools, name);
    let failure = interrupted_failure(engine, client, cause, tool, arguments, started);
    to_rmcp::to_call_result(ToolReply::from(failure), None, Structured::Never)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{GROUPS, ToolSet};
    use ostler_interface::error::object;
    use serde_json::json;

    #[test]
    fn what_types_signals_or_removes_is_not_repeated() {
        let all: Vec<_> = tools::tools_in(ToolSet::from_groups(&GROUPS)).collect();
        let of = |name: &str, action: &str| {
            let tool = all.iter().find(|tool| tool.name == name).unwrap();
            repeat_effect(tool, &object(json!({"action": action})))
        };
        for name in START_TOOLS
            .iter()
            .chain(["process", "pty_read", "command_ps_logs"].iter())
        {
            assert_eq!(of(name, ""), RepeatEffect::Idempotent, "{name}");
        }
        for name in [
            "process_control",
            "pty_write",
            "pty_run",
            "command_ps_clean",
            "kill_process",
        ] {
            assert_eq!(of(name, "write"), RepeatEffect::Repeats, "{name}");
        }
        assert_eq!(of("service", "start"), RepeatEffect::Idempotent);
        assert_eq!(of("service", "stop"), RepeatEffect::Repeats);
        assert_eq!(of("workspace", "diff"), RepeatEffect::Idempotent);
        assert_eq!(of("workspace", "commit"), RepeatEffect::Repeats);
        for name in START_TOOLS
            .iter()
            .chain(REPEATABLE.iter().map(|(name, _)| name))
        {
            assert!(all.iter().any(|tool| tool.name == *name), "{name}");
        }
    }
}
