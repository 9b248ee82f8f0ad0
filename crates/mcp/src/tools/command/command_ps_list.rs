//! `command_ps_list`: running and ended processes, newest first.

use ostler_engine::ListFilter;
use ostler_model::status::ProcessStatus;
use serde_json::json;

use super::status::CommandSummary;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::pagination::newest_first;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_ps_list",
    title: "",
    about: "List processes, newest first.",
    parameters: &[
        Parameter::optional("labels", ParameterKind::List, ""),
        Parameter::optional(
            "status",
            ParameterKind::Choice(&["running", "completed", "failed", "terminated", "error"]),
            "",
        ),
        CURSOR,
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(async move { run_tool(call, arguments) }),
};

fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let filter = ListFilter {
        status: arguments
            .text("status")
            .and_then(|word| ProcessStatus::parse(&word)),
        labels: arguments.list("labels"),
        limit: None,
    };
    let executions = call.engine.list(call.caller, &filter);
    let mut body = json!({"total": executions.len()});
    let remaining = listing::rest_after_cursor(&executions, newest_first, &mut arguments)?;
    let page = listing::execution_page(call, WHOLE_ANSWER, remaining, |info| {
        json!(CommandSummary::from(info))
    });
    listing::put_page(page, &mut body, "processes");
    Ok(ToolReply::status(&body))
}
