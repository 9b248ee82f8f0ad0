//! `context_close`: ends a context.

use ostler_interface::params::{Arguments, Parameter, ParameterKind};
use serde_json::json;

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "context_close",
    title: "Close a context",
    about: "End a context and remove the directory that was created for it; any other directory \
            stays. One in use (also by an undecided overlay) is refused, unless force.",
    parameters: &[
        Parameter::required("id", ParameterKind::Text, "The context"),
        Parameter::optional(
            "force",
            ParameterKind::Flag,
            "Stop what runs in it, discard its undecided overlays",
        )
        .with_default_flag(false),
    ],
    hints: ToolHints::DESTRUCTIVE,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("id");
    let force = arguments.flag("force");
    call.engine.remove_context(call.caller, &id, force).await?;
    Ok(ToolReply::status(&json!({"id": id, "closed": true})))
}
