//! `workspace`: the overlay of a command: show, commit, discard.

use ostler_api::WorkspaceBody;
use ostler_model::{
    ErrorCode, OverlayChanges, OverlayConflict, OverlayOutcome, OverlayRequest, OverlayResponse,
};
use ostler_render::isolation;
use serde_json::{Value, json};

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::params::action::{self, ToolAction};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The most changes or conflicts in one answer.
const MAX_LISTED: usize = 100;
/// The longest diff in one answer, in bytes; the rest is available by path.
const DIFF_BYTES: usize = 24 * 1024;

const ACTIONS: &[ToolAction] = &[
    ToolAction {
        name: "changes",
        required: &["id"],
        optional: &[],
    },
    ToolAction {
        name: "diff",
        required: &["id"],
        optional: &["paths"],
    },
    ToolAction {
        name: "commit",
        required: &["id"],
        optional: &["allow_autorun"],
    },
    ToolAction {
        name: "discard",
        required: &["id"],
        optional: &[],
    },
];

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "workspace",
    title: "",
    about: "What an exec with workspace overlay wrote, once it has ended. commit: puts all of it \
            into the workspace, or nothing where files changed there meanwhile.",
    parameters: &[
        Parameter::required(
            "action",
            ParameterKind::Choice(&["changes", "diff", "commit", "discard"]),
            "What to do",
        ),
        Parameter::required("id", ParameterKind::Text, "Id of the exec"),
        Parameter::alias("ids", "id"),
        Parameter::optional(
            "paths",
            ParameterKind::List,
            "diff: only these and what is below",
        ),
        Parameter::optional(
            "allow_autorun",
            ParameterKind::Flag,
            "commit: files too that tools run unasked (hooks, editor tasks)",
        ),
    ],
    hints: ToolHints::DESTRUCTIVE,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let word = action::parse_action(ACTIONS, &mut arguments)?;
    let id = arguments.required_text("id");
    let request = match word {
        "diff" => OverlayRequest::Diff {
            paths: arguments
                .list("paths")
                .into_iter()
                .map(Into::into)
                .collect(),
            limit_bytes: DIFF_BYTES,
        },
        "commit" => OverlayRequest::Commit {
            allow_autorun: arguments.flag("allow_autorun"),
        },
        "discard" => OverlayRequest::Discard,
        _ => OverlayRequest::Changes { limit: MAX_LISTED },
    };
    let response = call
        .engine
        .handle_overlay(call.caller, &id, request)
        .await?;
    let text = render_response(&response);
    let is_refused = matches!(response, OverlayResponse::Autorun(_));
    let fields = WorkspaceBody::new(response, MAX_LISTED).without_diff();
    let reply = |text| ToolReply::text(vec![text], to_fields(&fields));
    Ok(if is_refused {
        reply(text).with_failure(autorun_refusal(&id))
    } else if fields.conflicts.is_empty() {
        reply(text)
    } else {
        // Reported as an error because nothing was committed.
        reply(text).with_failure(conflict_failure(&id))
    })
}

fn to_fields(body: &WorkspaceBody) -> Value {
    serde_json::to_value(body).unwrap_or_else(|error| json!({"error": error.to_string()}))
}

fn render_response(response: &OverlayResponse) -> String {
    match response {
        OverlayResponse::Changes(changes) => {
            let outcome_text = isolation::outcome_word(changes.fate);
            match changes.fate {
                OverlayOutcome::Open | OverlayOutcome::Committed => {
                    let listed = isolation::describe_changes(changes, MAX_LISTED);
                    with_notes(format!("[{outcome_text}: {listed}]"), changes)
                }
                OverlayOutcome::Discarded => format!("[{outcome_text}]"),
            }
        }
        OverlayResponse::Diff {
            text,
            truncated,
            changes,
        } => {
            let diff_text = match (text.is_empty(), truncated) {
                (true, false) => "[no differences in files]".to_owned(),
                (_, false) => text.clone(),
                (_, true) => format!("{text}[cut short; name paths to see more]"),
            };
            with_notes(diff_text, changes)
        }
        OverlayResponse::Committed(changes) => {
            let listed = isolation::describe_changes(changes, MAX_LISTED);
            with_notes(format!("[committed: {listed}]"), changes)
        }
        OverlayResponse::Autorun(refused) => {
            isolation::describe_autorun(&refused.autorun).join("\n")
        }
        OverlayResponse::Conflicts(refused) => list_conflicts(&refused.changed_on_host),
        OverlayResponse::Discarded => "[discarded]".to_owned(),
    }
}

/// Appends the files that tools run automatically, and what changed on the host meanwhile.
fn with_notes(mut text: String, changes: &OverlayChanges) -> String {
    let mut notes = isolation::describe_autorun(&changes.autorun);
    let host = isolation::describe_host_changes(&changes.changed_on_host, MAX_LISTED);
    if !host.is_empty() {
        notes.push(host.join("\n"));
    }
    for note in notes {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[note: {note}]"));
    }
    text
}

fn autorun_refusal(id: &str) -> ApiError {
    let message = "tools run or obey some of it unasked; nothing was committed";
    ApiError::new(ErrorCode::ProcessControl, message).with_hint(format!(
        "look at the diff of {id}; commit with allow_autorun true puts it in place all the same"
    ))
}

fn list_conflicts(conflicts: &[OverlayConflict]) -> String {
    let lines = conflicts
        .iter()
        .take(MAX_LISTED)
        .map(isolation::describe_conflict);
    let mut lines: Vec<String> = lines.collect();
    if let Some(more @ 1..) = conflicts.len().checked_sub(MAX_LISTED) {
        lines.push(format!("… {more} more"));
    }
    lines.join("\n")
}

fn conflict_failure(id: &str) -> ApiError {
    let message = "the workspace changed since the command started; nothing was committed";
    ApiError::new(ErrorCode::ProcessControl, message).with_hint(format!(
        "look at the diff of {id}; then discard it and run the command again"
    ))
}
