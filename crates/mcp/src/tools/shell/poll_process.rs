//! `poll_process`: the status of a process, with its last lines on request.

use ostler_engine::ExecutionInfo;
use ostler_model::StreamName;
use ostler_render::isolation;
use serde::Serialize;

use super::lines::{LineEnd, LinesRead, read_lines};
use super::process::{EndedInfo, LINES_LIMIT, PROCESS_ID, STREAMS, ShellProcess};
use super::sync_reply::leftovers_note;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "poll_process",
    title: "Poll Process Status",
    about: "Check the status of an asynchronously running process. Optionally retrieve the last \
            N lines of output (max 100 lines). Only processes from the current session can be \
            queried.",
    parameters: &[
        PROCESS_ID,
        Parameter::optional(
            "tail",
            ParameterKind::Object(TAIL),
            "Get last N lines from stdout or stderr",
        ),
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

const TAIL: &[Parameter] = &[
    Parameter::optional("src", STREAMS, "Stream").with_default_text("stdout"),
    Parameter::optional(
        "n",
        ParameterKind::Clamped(1, LINES_LIMIT),
        "Number of lines (max 100)",
    )
    .with_default(10),
];

/// The structured result.
#[derive(Debug, Serialize)]
struct PollBody {
    #[serde(flatten)]
    process: ShellProcess,
    #[serde(flatten)]
    ended: EndedInfo,
    stdout_size: u64,
    stderr_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<StreamTail>,
    /// Additional notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// The last lines of one stream.
#[derive(Debug, Serialize)]
struct StreamTail {
    src: StreamName,
    lines: Vec<String>,
}

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("process_id");
    let info = call.info(&id)?;
    let mut notes = execution_notes(&info);
    let tail = match arguments.object("tail") {
        Some(wanted) => Some(read_tail(call, &info, wanted, &mut notes).await?),
        None => None,
    };
    let stats = call.engine.journal(call.caller, &id)?.stats()?;
    call.mark_notified(&info);
    Ok(ToolReply::status(&PollBody {
        process: ShellProcess::from(&info),
        ended: EndedInfo::from(&info),
        stdout_size: stats.for_stream(StreamName::Stdout).bytes,
        stderr_size: stats.for_stream(StreamName::Stderr).bytes,
        tail,
        notes,
    }))
}

async fn read_tail(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    mut arguments: Arguments,
    notes: &mut Vec<String>,
) -> Result<StreamTail, ApiError> {
    let src = parse_stream(&arguments.required_text("src"));
    let end = LineEnd::Tail(arguments.count("n").unwrap_or_default());
    let LinesRead {
        lines,
        notes: output_notes,
        ..
    } = read_lines(call, info, src, end).await?;
    notes.extend(output_notes);
    Ok(StreamTail { src, lines })
}

/// The stream with this name.
pub(super) fn parse_stream(word: &str) -> StreamName {
    if word == "stderr" {
        StreamName::Stderr
    } else {
        StreamName::Stdout
    }
}

fn execution_notes(info: &ExecutionInfo) -> Vec<String> {
    let degraded = info.state.degradations().cloned();
    leftovers_note(info)
        .into_iter()
        .chain(degraded)
        .chain(isolation::describe_level(
            &info.spec.policy,
            info.spec.container.as_deref(),
            &info.isolation_warnings(),
        ))
        .collect()
}
