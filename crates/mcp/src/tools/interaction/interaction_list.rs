//! `interaction_list`: open questions.

use serde_json::json;

use super::question::OpenQuestion;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::pagination::question_position;
use ostler_interface::params::Arguments;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "interaction_list",
    title: "List open questions",
    about: "List the questions of this session's commands that wait for an answer, newest first: \
            id, kind, message, options, default, until when, and the process that asks.",
    parameters: &[CURSOR],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(async move { run_tool(call, arguments) }),
};

fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let open = call.engine.poll_interactions(call.caller, true);
    let mut body = json!({"total": open.len()});
    let remaining = listing::rest_after_cursor(&open, question_position, &mut arguments)?;
    let all = remaining.len();
    let entries = remaining
        .into_iter()
        .map(|(at, it)| (at, (None, json!(OpenQuestion::from(it)))));
    let page = listing::fill_page(call, WHOLE_ANSWER, entries, all);
    listing::put_page(page, &mut body, "interactions");
    Ok(ToolReply::status(&body))
}
