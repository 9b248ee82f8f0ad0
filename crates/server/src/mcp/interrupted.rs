//! Calls that an end of the daemon came in the middle of: which of them can be carried out
//! again, and what the others are answered.

use ostler_engine::Engine;
use ostler_model::{ErrorCode, ExecutionId};
use rmcp::model::{CallToolResult, JsonObject};

use super::context::Client;
use super::convert;
use super::desk::Structured;
use super::reply::Reply;
use super::tools::Definition;
use crate::error::Failure;

/// Tools that start one command: with its id known, starting it again is waiting for it.
const STARTS: &[&str] = &[
    "exec",
    "command_execute",
    "command_bg_start",
    "execute_shell",
    "pty_start",
];
/// Actions of tools with several that change nothing, or change the same when repeated.
const REPEATABLE: &[(&str, &[&str])] = &[
    (
        "service",
        &[
            "start", "ensure", "up", "list", "status", "logs", "why", "define", "forget",
        ],
    ),
    ("workspace", &["changes", "diff"]),
];
/// Tools that show how something stands, in the order in which they are recommended.
const LOOKS: &[&str] = &["process", "command_ps_detail", "list_processes", "pty_list"];

/// What ended the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It died, and another one answers.
    Restart,
    /// It was shut down, and answers last.
    Shutdown,
}

/// What carrying a call out twice does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    /// The same as once.
    Same,
    /// Types, signals, stops or removes a second time.
    Again,
}

/// What carrying out this call twice does.
pub(super) fn twice(tool: &Definition, arguments: &JsonObject) -> Twice {
    if tool.hints.read_only || STARTS.contains(&tool.name) {
        return Twice::Same;
    }
    let action = arguments.get("action").and_then(|it| it.as_str());
    let known = REPEATABLE.iter().find(|(name, _)| *name == tool.name);
    match (known, action) {
        (Some((_, actions)), Some(action)) if actions.contains(&action) => Twice::Same,
        (Some(_) | None, Some(_) | None) => Twice::Again,
    }
}

/// What a call is answered that cannot be carried out to its end.
pub(super) fn failure(
    engine: &Engine,
    client: &Client,
    cause: Cause,
    (tool, arguments): (Option<&Definition>, &JsonObject),
    started: &[ExecutionId],
) -> Failure {
    let what = match cause {
        Cause::Restart => "the daemon was restarted while this call ran",
        Cause::Shutdown => "the daemon was shut down while this call ran",
    };
    let look = LOOKS
        .iter()
        .find(|name| client.front.tools.named(name).is_some());
    let look = look.map_or_else(String::new, |name| format!("look with {name}"));
    let infos = started
        .iter()
        .filter_map(|id| engine.info(&client.caller, &id.short()).ok());
    let went_on: Vec<String> = infos
        .map(|info| {
            let id = info.id.short();
            if info.state.is_finished() {
                format!("process {id} has ended")
            } else {
                format!("process {id} goes on")
            }
        })
        .collect();
    let repeats = tool.is_none_or(|tool| twice(tool, arguments) == Twice::Same);
    let (told, hint) = if !went_on.is_empty() {
        (went_on.join(", "), look)
    } else if repeats {
        let told = "nothing was started or changed".to_owned();
        (told, "call again: the next call starts a daemon".to_owned())
    } else {
        ("whether it took effect is not known".to_owned(), look)
    };
    let failure = Failure::new(ErrorCode::Internal, format!("{what}; {told}"));
    if hint.is_empty() {
        failure
    } else {
        failure.with_hint(hint)
    }
}

/// The same, as the result of a call.
pub(super) fn result(
    engine: &Engine,
    client: &Client,
    cause: Cause,
    (name, arguments): (&str, &JsonObject),
    started: &[ExecutionId],
) -> CallToolResult {
    let tool = client.front.tools.named(name);
    let failure = failure(engine, client, cause, (tool, arguments), started);
    convert::result(Reply::from(failure), None, Structured::Never)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::object;
    use crate::mcp::profile::GROUPS;
    use crate::mcp::tools;
    use serde_json::json;

    #[test]
    fn what_types_signals_or_removes_is_not_repeated() {
        let all: Vec<_> = GROUPS.into_iter().flat_map(tools::of).collect();
        let of = |name: &str, action: &str| {
            let tool = all.iter().find(|tool| tool.name == name).unwrap();
            twice(tool, &object(json!({"action": action})))
        };
        for name in STARTS
            .iter()
            .chain(["process", "pty_read", "command_ps_logs"].iter())
        {
            assert_eq!(of(name, ""), Twice::Same, "{name}");
        }
        for name in [
            "process_control",
            "pty_write",
            "pty_run",
            "command_ps_clean",
            "kill_process",
        ] {
            assert_eq!(of(name, "write"), Twice::Again, "{name}");
        }
        assert_eq!(of("service", "start"), Twice::Same);
        assert_eq!(of("service", "stop"), Twice::Again);
        assert_eq!(of("workspace", "diff"), Twice::Same);
        assert_eq!(of("workspace", "commit"), Twice::Again);
        for name in STARTS.iter().chain(REPEATABLE.iter().map(|(name, _)| name)) {
            assert!(all.iter().any(|tool| tool.name == *name), "{name}");
        }
    }
}
