//! `history_search`: executions of the last months.

use ostler_api::HistoryEntryBody;
use ostler_interface::convert::{history_entry_body, run_statistics_body};
use ostler_interface::error::ApiError;
use ostler_interface::history::{History, HistoryFreshness, arguments, no_history};
use ostler_interface::pagination::json_chars;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_interface::project_history;
use ostler_render::{REPLY_CHARS, clean, truncated};
use ostler_store::HistoryQuery;
use serde_json::{Value, json};

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};

/// The most entries of an answer.
const ENTRIES_LIMIT: i64 = 100;
/// Entries of an answer by default.
const ENTRIES: i64 = 20;
/// The most characters of a command line in a list.
const COMMAND_CHARS: usize = 300;
/// Reserved for the text around the entries.
const FRAME_CHARS: usize = 400;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "history_search",
    title: "Search the history of commands",
    about: "Search the commands of the last months, also those whose output is gone, newest \
            first: id, command, directory, status, exit code, when and how long. With id: \
            everything known of one, and how the same command usually ends (median and 90th \
            percentile of its duration, how often it fails).",
    parameters: &[
        Parameter::optional("id", ParameterKind::Text, "Only this one, in full"),
        arguments::TEXT,
        arguments::STATUS,
        arguments::LABEL,
        arguments::PROJECT,
        arguments::SINCE,
        arguments::UNTIL,
        Parameter::optional(
            "limit",
            ParameterKind::Integer(1, ENTRIES_LIMIT),
            "At most so many",
        )
        .with_default(ENTRIES),
        Parameter::optional(
            "cursor",
            ParameterKind::Integer(0, i64::MAX),
            "The list before's next",
        ),
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let history = call.state.history().ok_or_else(no_history)?;
    let body = match arguments.text("id") {
        Some(id) => detail(history, call, &id).await?,
        None => {
            let query = HistoryQuery {
                limit: arguments.count("limit").unwrap_or_default(),
                before: arguments.count("cursor"),
                project: arguments.text("project"),
                ..arguments::history_query(&mut arguments, call.caller)?
            };
            list(history, query).await?
        }
    };
    Ok(ToolReply::status(&body))
}

async fn detail(history: &History, call: ToolCall<'_>, id: &str) -> Result<Value, ApiError> {
    let answer = project_history::find(history, call.caller, id).await?;
    let (row, usual) = answer.value;
    let mut entry = history_entry_body(row);
    entry.command = clean(&entry.command).into_owned();
    let mut body = json!(entry);
    if let Some(usual) = usual {
        body["usual"] = json!(run_statistics_body(&usual));
    }
    Ok(body)
}

async fn list(history: &History, query: HistoryQuery) -> Result<Value, ApiError> {
    let answer = project_history::list(history, query).await?;
    let mut body = json!({});
    put_lateness(&answer.freshness, &mut body);
    let page = answer.value;
    let mut next = page.next_before;
    let (mut entries, mut chars) = (Vec::new(), 0);
    for row in page.rows {
        let position = row.position;
        let entry = list_entry(&history_entry_body(row));
        chars += json_chars(&entry);
        if chars > REPLY_CHARS - FRAME_CHARS && !entries.is_empty() {
            // The next page begins with this one.
            next = Some(position + 1);
            break;
        }
        entries.push(entry);
    }
    body["executions"] = entries.into();
    if let Some(next) = next {
        body["next"] = next.into();
        body["hint"] = "cursor: this next".into();
    }
    Ok(body)
}

fn put_lateness(freshness: &HistoryFreshness, body: &mut Value) {
    if let Some(reason) = &freshness.error {
        body["not_up_to_date"] = reason.as_str().into();
    } else if freshness.behind > 0 {
        body["events_missing"] = freshness.behind.into();
    }
}

fn list_entry(entry: &HistoryEntryBody) -> Value {
    let mut value = json!({
        "id": entry.id,
        "command": truncated(&clean(&entry.command), COMMAND_CHARS),
        "cwd": entry.cwd,
        "status": entry.status,
        "created_at": entry.created_at,
    });
    let optional = [
        ("exit_code", entry.exit_code.map(Value::from)),
        ("signal", entry.signal.map(Value::from)),
        ("duration_ms", entry.duration_ms.map(Value::from)),
    ];
    for (name, field) in optional {
        if let Some(field) = field {
            value[name] = field;
        }
    }
    if !entry.labels.is_empty() {
        value["labels"] = json!(entry.labels);
    }
    value
}
