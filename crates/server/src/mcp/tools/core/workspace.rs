//! `workspace`: what a command wrote to its overlay, shown, committed or forgotten.

use ostler_model::{AutorunReport, Conflict, ErrorCode, Fate, WorkspaceAnswer, WorkspaceOrder};
use serde_json::{Value, json};

use super::action::{self, Action};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::walls;
use crate::wire::WorkspaceBody;

/// The most changes, or conflicts, that one answer lists.
const LISTED: usize = 100;
/// The longest diff of one answer, in bytes; paths show the rest.
const DIFF_BYTES: usize = 24 * 1024;

const ACTIONS: &[Action] = &[
    Action {
        word: "changes",
        needs: &["id"],
        takes: &[],
    },
    Action {
        word: "diff",
        needs: &["id"],
        takes: &["paths"],
    },
    Action {
        word: "commit",
        needs: &["id"],
        takes: &["allow_autorun"],
    },
    Action {
        word: "discard",
        needs: &["id"],
        takes: &[],
    },
];

pub(super) const DEFINITION: Definition = Definition {
    name: "workspace",
    title: "",
    about: "What an exec with workspace overlay wrote, once it has ended. commit: puts all of it \
            into the workspace, or nothing where files changed there meanwhile.",
    parameters: &[
        Parameter::required(
            "action",
            Kind::Choice(&["changes", "diff", "commit", "discard"]),
            "What to do",
        ),
        Parameter::required("id", Kind::Text, "Id of the exec"),
        Parameter::alias("ids", "id"),
        Parameter::optional("paths", Kind::List, "diff: only these and what is below"),
        Parameter::optional(
            "allow_autorun",
            Kind::Flag,
            "commit: files too that tools run unasked (hooks, editor tasks)",
        ),
    ],
    hints: Hints::ENDS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let word = action::chosen(ACTIONS, &mut arguments)?;
    let id = arguments.required_text("id");
    let order = match word {
        "diff" => WorkspaceOrder::Diff {
            paths: arguments
                .list("paths")
                .into_iter()
                .map(Into::into)
                .collect(),
            limit_bytes: DIFF_BYTES,
        },
        "commit" => WorkspaceOrder::Commit {
            allow_autorun: arguments.flag("allow_autorun"),
        },
        "discard" => WorkspaceOrder::Discard,
        _ => WorkspaceOrder::Changes { limit: LISTED },
    };
    let answer = call.engine.workspace(call.caller, &id, order).await?;
    let text = told(&answer);
    let is_refused = matches!(answer, WorkspaceAnswer::Autorun(_));
    let fields = WorkspaceBody::new(answer, LISTED).without_text();
    let reply = |text| Reply::text(vec![text], fields_of(&fields));
    Ok(if is_refused {
        reply(text).failed(refused(&id))
    } else if fields.conflicts.is_empty() {
        reply(text)
    } else {
        // Not a failure of ours, but nothing was done that was asked for.
        reply(text).failed(conflict(&id))
    })
}

fn fields_of(body: &WorkspaceBody) -> Value {
    serde_json::to_value(body).unwrap_or_else(|error| json!({"error": error.to_string()}))
}

fn told(answer: &WorkspaceAnswer) -> String {
    match answer {
        WorkspaceAnswer::Changes(changes) => {
            let fate = walls::fate(changes.fate);
            match changes.fate {
                Fate::Open | Fate::Committed => {
                    let listed = walls::changes(changes, LISTED);
                    with(format!("[{fate}: {listed}]"), &changes.autorun)
                }
                Fate::Discarded => format!("[{fate}]"),
            }
        }
        WorkspaceAnswer::Diff {
            text,
            truncated,
            autorun,
        } => {
            let shown = match (text.is_empty(), truncated) {
                (true, false) => "[no differences in files]".to_owned(),
                (_, false) => text.clone(),
                (_, true) => format!("{text}[cut short; name paths to see more]"),
            };
            with(shown, autorun)
        }
        WorkspaceAnswer::Committed(changes) => {
            let listed = walls::changes(changes, LISTED);
            with(format!("[committed: {listed}]"), &changes.autorun)
        }
        WorkspaceAnswer::Autorun(report) => walls::autorun(report).join("\n"),
        WorkspaceAnswer::Conflicts(conflicts) => listed(conflicts),
        WorkspaceAnswer::Discarded => "[discarded]".to_owned(),
    }
}

/// A text, and what runs unasked after it.
fn with(mut text: String, autorun: &AutorunReport) -> String {
    for told in walls::autorun(autorun) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[note: {told}]"));
    }
    text
}

fn refused(id: &str) -> Failure {
    let message = "tools run or obey some of it unasked; nothing was committed";
    Failure::new(ErrorCode::ProcessControl, message).with_hint(format!(
        "look at the diff of {id}; commit with allow_autorun true puts it in place all the same"
    ))
}

fn listed(conflicts: &[Conflict]) -> String {
    let lines = conflicts.iter().take(LISTED).map(walls::conflict);
    let mut lines: Vec<String> = lines.collect();
    if let Some(more @ 1..) = conflicts.len().checked_sub(LISTED) {
        lines.push(format!("… {more} more"));
    }
    lines.join("\n")
}

fn conflict(id: &str) -> Failure {
    let message = "the workspace changed since the command started; nothing was committed";
    Failure::new(ErrorCode::ProcessControl, message).with_hint(format!(
        "look at the diff of {id}; then discard it and run the command again"
    ))
}
