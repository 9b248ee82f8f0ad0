//! Calls interrupted by the end of the daemon: which of them can be repeated, and the answer to the
//! others.

use ostler_engine::Engine;
use ostler_model::{Caller, ErrorCode, ExecutionId};
use rmcp::model::{CallToolResult, JsonObject};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::ConnectedClient;
use super::options::Structured;
use super::reply::ToolReply;
use super::to_rmcp;
use super::tools::ToolDefinition;
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
/// Actions of multi-action tools that change nothing.
const READING: &[(&str, &[&str])] = &[
    ("service", &["list", "status", "logs", "why"]),
    ("workspace", &["changes", "diff"]),
];
/// Tools that type under an idempotency key.
const TYPING_TOOLS: &[&str] = &["pty_run"];
/// The tool that shows what a terminal session shows.
const READ_TOOL: &str = "pty_read";
/// The tool of services.
const SERVICE_TOOL: &str = "service";
/// Tools that show an execution's status, in the order in which they are recommended.
const STATUS_TOOLS: &[&str] = &["process", "command_ps_detail", "list_processes", "pty_list"];

/// What interrupted a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptCause {
    /// It died, and its successor answers.
    Restart,
    /// It was shut down, and answers before it exits.
    Shutdown,
    /// The client lost the response stream, over HTTP.
    StreamLost,
    /// The client lost the response stream, and its answer had to make room for others.
    AnswerDropped,
}

/// The effect of carrying a call out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatEffect {
    /// The same as once.
    Idempotent,
    /// The same as once where an earlier attempt at the same request typed it; a new call types it
    /// again.
    TypesOnce,
    /// It types, signals, stops or removes a second time.
    Repeats,
}

/// What is to be known of a call that may be interrupted.
#[derive(Debug)]
pub(super) struct CallEffect {
    pub(super) repeat: RepeatEffect,
    /// Whether it changes nothing, however far it came.
    is_reading: bool,
    /// Whether it is about services.
    is_of_service: bool,
    /// The terminal session that it names.
    session: Option<String>,
}

impl CallEffect {
    pub(super) fn of(tool: &ToolDefinition, arguments: &JsonObject) -> Self {
        let session = arguments.get("session").and_then(|it| it.as_str());
        Self {
            repeat: repeat_effect(tool, arguments),
            is_reading: is_reading(tool, arguments),
            is_of_service: tool.name == SERVICE_TOOL,
            session: session.map(str::to_owned),
        }
    }
}

/// The effect of carrying out this call twice.
fn repeat_effect(tool: &ToolDefinition, arguments: &JsonObject) -> RepeatEffect {
    if TYPING_TOOLS.contains(&tool.name) {
        return if arguments.contains_key("script") {
            RepeatEffect::TypesOnce
        } else {
            RepeatEffect::Idempotent
        };
    }
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

/// Whether this call starts, types, changes and ends nothing.
fn is_reading(tool: &ToolDefinition, arguments: &JsonObject) -> bool {
    let types = TYPING_TOOLS.contains(&tool.name) && arguments.contains_key("script");
    let reads = tool.hints.read_only || TYPING_TOOLS.contains(&tool.name);
    let action = arguments.get("action").and_then(|it| it.as_str());
    let has_action = |(name, actions): &(&str, &[&str])| {
        *name == tool.name && action.is_some_and(|it| actions.contains(&it))
    };
    (reads && !types) || READING.iter().any(has_action)
}

/// A call that cannot be completed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InterruptedCall {
    /// Whether it changes nothing. An event id of an earlier version does not say so.
    #[serde(default)]
    is_reading: bool,
    /// The tool of the client that shows an execution's status, what the session shows, or services.
    status_tool: Option<String>,
    /// What it has started, where it came that far.
    started: Vec<ExecutionId>,
}

impl InterruptedCall {
    /// A call with this effect; `None` for one of an unknown tool, which has none.
    pub(super) fn new(
        client: &ConnectedClient,
        effect: Option<CallEffect>,
        started: &[ExecutionId],
    ) -> Self {
        let tools = &client.context.tools;
        let session = effect.as_ref().and_then(|it| it.session.as_ref());
        let read = session.filter(|_| tools.offers(READ_TOOL));
        let read = read.map(|id| format!("{READ_TOOL} {}", json!({"session": id})));
        let is_of_service = effect.as_ref().is_some_and(|it| it.is_of_service);
        let list = is_of_service.then(|| format!("{SERVICE_TOOL} {}", json!({"action": "list"})));
        let mut status_tools = STATUS_TOOLS.iter();
        let status_tool = status_tools.find(|name| tools.offers(name));
        Self {
            is_reading: effect.is_none_or(|it| it.is_reading),
            status_tool: read
                .or(list)
                .or_else(|| status_tool.map(|name| (*name).to_owned())),
            started: started.to_vec(),
        }
    }

    /// The error that answers it.
    pub(super) fn failure(
        &self,
        engine: &Engine,
        caller: &Caller,
        cause: InterruptCause,
    ) -> ApiError {
        let reason = match cause {
            InterruptCause::Restart => "the daemon was restarted while this call ran",
            InterruptCause::Shutdown => "the daemon was shut down while this call ran",
            InterruptCause::StreamLost => "the stream of this call was not resumed in time",
            InterruptCause::AnswerDropped => {
                "the answer to this call is not kept any more: later ones took its place"
            }
        };
        let status_tool = self.status_tool.as_ref();
        let status_hint = status_tool.map_or_else(String::new, |name| format!("look with {name}"));
        let started = self.started.iter();
        let infos = started.filter_map(|id| engine.info(caller, &id.short()).ok());
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
        let (outcome, hint) = if !still_there.is_empty() {
            (still_there.join(", "), status_hint)
        } else if self.is_reading {
            let outcome = "nothing was started or changed".to_owned();
            let hint = match cause {
                InterruptCause::Restart | InterruptCause::Shutdown => {
                    "call again: the next call starts a daemon"
                }
                InterruptCause::StreamLost | InterruptCause::AnswerDropped => "call again",
            };
            (outcome, hint.to_owned())
        } else {
            // What it started may have ended and been removed by now, and other changes leave no trace.
            let hint = match status_hint.as_str() {
                "" => status_hint,
                hint => format!("{hint} before you call again"),
            };
            ("whether it took effect is not known".to_owned(), hint)
        };
        let failure = ApiError::new(ErrorCode::Internal, format!("{reason}; {outcome}"));
        if hint.is_empty() {
            failure
        } else {
            failure.with_hint(hint)
        }
    }

    /// The same error as the result of the call.
    pub(super) fn result(
        &self,
        engine: &Engine,
        caller: &Caller,
        cause: InterruptCause,
    ) -> CallToolResult {
        let failure = self.failure(engine, caller, cause);
        to_rmcp::to_call_result(ToolReply::from(failure), None, Structured::Never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{GROUPS, ToolSet};
    use crate::tools;
    use ostler_interface::error::object;

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
            "command_ps_clean",
            "kill_process",
        ] {
            assert_eq!(of(name, "write"), RepeatEffect::Repeats, "{name}");
        }
        assert_eq!(of("pty_run", ""), RepeatEffect::Idempotent);
        let run = all.iter().find(|tool| tool.name == "pty_run").unwrap();
        let typing = repeat_effect(run, &object(json!({"script": "make"})));
        assert_eq!(typing, RepeatEffect::TypesOnce);
        assert_eq!(of("service", "start"), RepeatEffect::Idempotent);
        assert_eq!(of("service", "stop"), RepeatEffect::Repeats);
        assert_eq!(of("workspace", "diff"), RepeatEffect::Idempotent);
        assert_eq!(of("workspace", "commit"), RepeatEffect::Repeats);
        for name in START_TOOLS
            .iter()
            .chain(TYPING_TOOLS)
            .chain([&READ_TOOL, &SERVICE_TOOL])
            .chain(READING.iter().map(|(name, _)| name))
            .chain(REPEATABLE.iter().map(|(name, _)| name))
        {
            assert!(all.iter().any(|tool| tool.name == *name), "{name}");
        }
    }

    #[test]
    fn only_what_reads_surely_changed_nothing() {
        let all: Vec<_> = tools::tools_in(ToolSet::from_groups(&GROUPS)).collect();
        let reads = |name: &str, arguments: serde_json::Value| {
            let tool = all.iter().find(|tool| tool.name == name).unwrap();
            is_reading(tool, &object(arguments))
        };
        for name in START_TOOLS {
            assert!(!reads(name, json!({})), "{name}");
        }
        for action in ["start", "ensure", "up", "define", "forget", "stop"] {
            assert!(!reads("service", json!({"action": action})), "{action}");
        }
        assert!(!reads("workspace", json!({"action": "commit"})));
        assert!(!reads("pty_run", json!({"script": "make"})));
        assert!(!reads("process_control", json!({"action": "clean"})));
        assert!(reads("pty_run", json!({})));
        assert!(reads("process", json!({"action": "wait"})));
        for (name, actions) in READING {
            for action in *actions {
                assert!(reads(name, json!({"action": action})), "{name} {action}");
            }
        }
    }
}
