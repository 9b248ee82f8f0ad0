//! `pty_list`: the sessions.

use ostler_engine::{ExecutionInfo, ListFilter};
use ostler_model::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::prompt_text::clip;
use super::session::format_seconds;
use crate::reply::ToolReply;
use crate::screen::clean_title;
use crate::tool_call::ToolCall;
use crate::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::pagination::newest_first;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The most sessions of one list.
const MAX_ENTRIES: usize = 200;
/// The most sessions whose title is shown: it requires reading their output.
const MAX_TITLES: usize = 32;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_list",
    title: "List terminals",
    about: "List sessions, newest first.",
    parameters: &[
        Parameter::optional(
            "status",
            ParameterKind::Choice(&["running", "exited", "killed"]),
            "Default all",
        ),
        CURSOR,
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

/// One session.
#[derive(Debug, Serialize)]
struct SessionSummary {
    session: String,
    status: &'static str,
    command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    pid: Option<u32>,
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    output_length: u64,
    cols: u16,
    rows: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    /// The holder of the lease, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for_input: Option<String>,
}

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let status_filter = arguments.text("status");
    let executions = call.engine.list(call.caller, &ListFilter::default());
    let executions = executions.into_iter().filter(|info| info.size().is_some());
    let sessions: Vec<ExecutionInfo> = executions.collect();
    let running = sessions.iter().filter(|info| !info.state.is_finished());
    let running = running.count();
    let matches_status = |info: &&ExecutionInfo| {
        let status_filter = status_filter.as_deref();
        status_filter.is_none_or(|status| info.status().session == status)
    };
    let chosen: Vec<&ExecutionInfo> = sessions.iter().filter(matches_status).collect();
    let mut body = json!({"total": chosen.len(), "running": running});
    let remaining = listing::rest_after_cursor(chosen, newest_first, &mut arguments)?;
    let all = remaining.len();
    let mut entries = Vec::new();
    for (at, info) in remaining.into_iter().take(MAX_ENTRIES) {
        let entry = json!(session_summary(call, info, entries.len() < MAX_TITLES).await);
        entries.push((at, (Some(info), entry)));
    }
    let page = listing::fill_page(call, WHOLE_ANSWER, entries, all);
    listing::put_page(page, &mut body, "sessions");
    Ok(ToolReply::status(&body))
}

async fn session_summary(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    with_title: bool,
) -> SessionSummary {
    let id = info.id.short();
    let ending = info.state.ending.as_ref();
    let size = info.size();
    let view = if with_title {
        call.engine.screen(call.caller, &id).await.ok()
    } else {
        None
    };
    let holder = call.engine.lease_holder(call.caller, &id).ok().flatten();
    SessionSummary {
        status: info.status().session,
        command: clip(&info.spec.command.display()),
        description: clip(&info.spec.description),
        labels: info.spec.labels.clone(),
        pid: info.state.pid,
        start_time: info.state.started_at.or(info.state.created_at),
        end_time: info.state.ended_at,
        exit_code: ending.and_then(|ending| ending.code),
        signal: ending
            .and_then(|ending| ending.signal)
            .map(|signal| signal.name()),
        output_length: info.output_end,
        cols: size.map_or(0, |size| size.cols),
        rows: size.map_or(0, |size| size.rows),
        title: view.as_ref().map(clean_title).unwrap_or_default(),
        holder: holder.map(
            |holder| json!({"name": clip(&holder.name), "since": format_seconds(holder.since)}),
        ),
        waiting_for_input: info.state.prompt.as_deref().map(clip),
        session: id,
    }
}
