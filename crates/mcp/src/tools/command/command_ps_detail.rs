//! `command_ps_detail`: the details of one process.

use ostler_render::REPLY_CHARS;
use serde_json::{Value, json};

use super::command_ps_stop::PID;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::convert::execution_body;
use ostler_interface::params::Arguments;

/// The most characters of one field in a detail.
const FIELD_CHARS: usize = 4_000;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_ps_detail",
    title: "",
    about: "Everything known of one process.",
    parameters: &[PID],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(async move { run_tool(call, arguments) }),
};

fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let info = call.info(&arguments.required_text("pid"))?;
    call.mark_notified(&info);
    let mut body = json!(execution_body(&info));
    if let Some(fields) = body.as_object_mut() {
        let id = fields.remove("id").unwrap_or_default();
        fields.insert("pid".to_owned(), id);
    }
    truncate_fields(&mut body);
    Ok(ToolReply::status(&body))
}

/// Cuts oversized fields, so that the detail stays within the budget of a reply.
fn truncate_fields(body: &mut Value) {
    if body.to_string().chars().count() <= REPLY_CHARS {
        return;
    }
    for field in [
        "argv",
        "command",
        "description",
        "directory",
        "labels",
        "degraded",
    ] {
        let text = body[field]
            .as_str()
            .map_or_else(|| body[field].to_string(), str::to_owned);
        let Some((end, _)) = text.char_indices().nth(FIELD_CHARS / 2) else {
            continue;
        };
        let cut = format!("{}… ({} characters)", &text[..end], text.chars().count());
        body[field] = if body[field].is_array() {
            json!([cut])
        } else {
            cut.into()
        };
    }
}
