//! `read_process_output`: the first or the last lines of one stream.

use ostler_model::{Cursor, StreamName};
use serde::Serialize;
use serde_json::{Value, json};

use super::lines::{LineEnd, LinesRead, read_lines};
use super::poll_process::parse_stream;
use super::process::{LINES_LIMIT, PROCESS_ID, STREAMS};
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, check_cursor, parse_cursor};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The note in every answer.
const NOTE: &str = "Text output only. Max 100 lines per request.";

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "read_process_output",
    title: "Read Process Output",
    about: "Read stdout or stderr from a background process. TEXT OUTPUT ONLY. Maximum 100 lines \
            per request. Use 'tail' mode for last N lines, 'head' for first N lines.",
    parameters: &[
        PROCESS_ID,
        Parameter::required("stream", STREAMS, "Stream to read from"),
        Parameter::optional(
            "mode",
            ParameterKind::Choice(&["tail", "head"]),
            "Last lines or first lines",
        )
        .with_default_text("tail"),
        Parameter::optional(
            "lines",
            ParameterKind::Clamped(1, LINES_LIMIT),
            "Number of lines to read (max 100)",
        )
        .with_default(20),
        Parameter::optional(
            "cursor",
            ParameterKind::Text,
            "Instead of mode: the first lines from this cursor of an earlier answer on",
        ),
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

/// The result, as text; without `content` also structured.
#[derive(Debug, Serialize)]
struct OutputContent {
    process_id: String,
    status: &'static str,
    stream: StreamName,
    mode: String,
    lines_requested: u64,
    lines_returned: usize,
    content: Vec<String>,
    total_size: u64,
    /// The cursor after these lines, in an answer to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
    note: String,
}

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("process_id");
    let stream = parse_stream(&arguments.required_text("stream"));
    let is_mode_given = arguments.is_given("mode");
    let mode = arguments.required_text("mode");
    let requested = arguments.count("lines").unwrap_or_default();
    let info = call.info(&id)?;
    let cursor = parse_cursor(&mut arguments)?;
    check_cursor(&info, CURSOR_PARAMETER, cursor)?;
    if cursor.is_some() && is_mode_given {
        return Err(ApiError::value(
            "parameters 'mode' and 'cursor' are both given; allowed: one of them",
        )
        .into());
    }
    let end = match (cursor, mode.as_str()) {
        (Some(cursor), _) => LineEnd::After(cursor, requested),
        (None, "head") => LineEnd::Head(requested),
        (None, _) => LineEnd::Tail(requested),
    };
    let LinesRead { lines, notes, next } = read_lines(call, &info, stream, end).await?;
    let stats = call.engine.journal(call.caller, &id)?.stats()?;
    call.mark_notified(&info);
    let mut note = NOTE.to_owned();
    for line in notes {
        note.push_str(" Note: ");
        note.push_str(&line);
    }
    Ok(to_reply(&OutputContent {
        process_id: info.id.short(),
        status: info.status().shell,
        stream,
        mode: cursor.map_or(mode, |_| "cursor".to_owned()),
        lines_requested: requested,
        lines_returned: lines.len(),
        content: lines,
        total_size: stats.for_stream(stream).bytes,
        next_cursor: cursor.map(|_| next),
        note,
    }))
}

/// The result as JSON text; as it contains output, the structured content omits that.
fn to_reply(content: &OutputContent) -> ToolReply {
    let mut body = json!(content);
    let text = body.to_string();
    if let Value::Object(fields) = &mut body {
        fields.remove("content");
    }
    ToolReply::text(vec![text], body)
}
