//! `list_processes`: running and ended processes, newest first.

use ostler_engine::{ExecutionInfo, ListFilter};
use serde_json::json;

use super::process::ShellProcess;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::pagination::newest_first;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "list_processes",
    title: "List Processes",
    about: "List all background processes in the current session, newest first. Filter by \
            status: 'all' (default), 'running', or 'finished' (ended, however it ended).",
    parameters: &[
        Parameter::optional(
            "status_filter",
            ParameterKind::Choice(&["all", "running", "finished"]),
            "Which to list",
        )
        .with_default_text("all"),
        CURSOR,
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(async move { run_tool(call, arguments) }),
};

fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let status_filter = arguments.required_text("status_filter");
    let executions = call.engine.list(call.caller, &ListFilter::default());
    let (ended, running): (Vec<&ExecutionInfo>, Vec<&ExecutionInfo>) =
        executions.iter().partition(|info| info.state.is_finished());
    let count_with_status = |status: &str| {
        let same = ended.iter().filter(|info| info.status().shell == status);
        same.count()
    };
    let mut body = json!({
        "running": running.len(),
        "finished": ended.len(),
        "failed": count_with_status("failed"),
        "killed": count_with_status("killed"),
    });
    let selected = match status_filter.as_str() {
        "running" => running,
        "finished" => ended,
        _ => executions.iter().collect(),
    };
    body["total"] = selected.len().into();
    let remaining = listing::rest_after_cursor(selected, newest_first, &mut arguments)?;
    let page = listing::execution_page(call, WHOLE_ANSWER, remaining, |info| {
        json!(ShellProcess::from(info))
    });
    listing::put_page(page, &mut body, "processes");
    Ok(ToolReply::status(&body))
}
