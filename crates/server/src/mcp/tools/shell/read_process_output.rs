//! `read_process_output`: the first or the last lines of one stream.

use ostler_model::StreamName;
use serde::Serialize;
use serde_json::{Value, json};

use super::lines::{End, Read, read};
use super::poll_process::stream;
use super::process::{LINES_LIMIT, PROCESS_ID, STREAMS};
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

/// What the document tells with every answer.
const NOTE: &str = "Text output only. Max 100 lines per request.";

pub(super) const DEFINITION: Definition = Definition {
    name: "read_process_output",
    title: "Read Process Output",
    about: "Read stdout or stderr from a background process. TEXT OUTPUT ONLY. Maximum 100 lines \
            per request. Use 'tail' mode for last N lines, 'head' for first N lines.",
    parameters: &[
        PROCESS_ID,
        Parameter::required("stream", STREAMS, "Stream to read from"),
        Parameter::optional(
            "mode",
            Kind::Choice(&["tail", "head"]),
            "Last lines or first lines",
        )
        .or_text("tail"),
        Parameter::optional(
            "lines",
            Kind::Clamped(1, LINES_LIMIT),
            "Number of lines to read (max 100)",
        )
        .or(20),
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

/// What is answered, as text; without `content` also for programs.
#[derive(Debug, Serialize)]
struct Content {
    process_id: String,
    status: &'static str,
    stream: StreamName,
    mode: String,
    lines_requested: u64,
    lines_returned: usize,
    content: Vec<String>,
    total_size: u64,
    note: String,
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("process_id");
    let stream = stream(&arguments.required_text("stream"));
    let mode = arguments.required_text("mode");
    let wanted = arguments.count("lines").unwrap_or_default();
    let info = call.info(&id)?;
    let end = match mode.as_str() {
        "head" => End::Head(wanted),
        _ => End::Tail(wanted),
    };
    let Read { lines, notes } = read(call, &info, stream, end).await?;
    let stats = call.engine.journal(call.caller, &id)?.stats()?;
    call.told(&info);
    let mut note = NOTE.to_owned();
    for told in notes {
        note.push_str(" Note: ");
        note.push_str(&told);
    }
    Ok(reply(&Content {
        process_id: info.id.short(),
        status: info.status().shell,
        stream,
        mode,
        lines_requested: wanted,
        lines_returned: lines.len(),
        content: lines,
        total_size: stats.of(stream).bytes,
        note,
    }))
}

/// The document's object as text; it bears output, so programs get the rest of it (F6).
fn reply(content: &Content) -> Reply {
    let mut body = json!(content);
    let text = body.to_string();
    if let Value::Object(fields) = &mut body {
        fields.remove("content");
    }
    Reply::text(vec![text], body)
}
