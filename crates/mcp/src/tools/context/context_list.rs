//! `context_list`: the contexts there are.

use ostler_engine::ContextInfo;
use ostler_interface::convert::context_body;
use ostler_interface::pagination::json_chars;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use ostler_render::{REPLY_CHARS, truncated};
use serde_json::{Value, json};

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};

/// The most characters of a project or a directory in a list.
const NAME_CHARS: usize = 200;
/// Reserved for the text around the entries.
const FRAME_CHARS: usize = 200;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "context_list",
    title: "List contexts",
    about: "List contexts, newest first: id, project, status (idle, busy, ending, failed), \
            directory, the ids of what runs in it. With id: everything of one.",
    parameters: &[Parameter::optional(
        "id",
        ParameterKind::Text,
        "Only this one, in full",
    )],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    if let Some(id) = arguments.text("id") {
        let context = call.engine.context(call.caller, &id)?;
        return Ok(ToolReply::status(&json!(context_body(&context))));
    }
    Ok(ToolReply::status(&listing(
        &call.engine.contexts(call.caller),
    )))
}

/// As many as fit into an answer, and how many do not.
fn listing(contexts: &[ContextInfo]) -> Value {
    let (mut entries, mut chars) = (Vec::new(), 0);
    for context in contexts {
        let entry = list_entry(context);
        chars += json_chars(&entry);
        if chars > REPLY_CHARS - FRAME_CHARS {
            break;
        }
        entries.push(entry);
    }
    let omitted = contexts.len() - entries.len();
    let mut body = json!({"contexts": entries});
    if omitted > 0 {
        body["omitted"] = omitted.into();
    }
    body
}

fn list_entry(context: &ContextInfo) -> Value {
    let body = context_body(context);
    json!({
        "id": body.id,
        "project": truncated(&body.project, NAME_CHARS),
        "status": body.status,
        "directory": truncated(&body.directory.to_string(), NAME_CHARS),
        "executions": body.executions,
    })
}
