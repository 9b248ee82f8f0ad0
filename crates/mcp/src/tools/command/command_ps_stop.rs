//! `command_ps_stop`: stop a process with its tree.

use ostler_engine::StopRequest;

use super::status::StoppedBody;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const PID: Parameter = Parameter::required("pid", ParameterKind::Text, "");

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_ps_stop",
    title: "",
    about: "End a process with everything it started: killed after 5 s, with force at once.",
    parameters: &[
        PID,
        Parameter::optional("force", ParameterKind::Flag, "").with_default_flag(false),
        Parameter::optional("reason", ParameterKind::Text, ""),
    ],
    hints: ToolHints::DESTRUCTIVE,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("pid");
    let request = StopRequest {
        force: arguments.flag("force"),
        grace: None,
        reason: arguments.text("reason"),
    };
    let was_running = !call.info(&id)?.state.is_finished();
    let info = call.engine.stop(call.caller, &id, request).await?;
    call.mark_notified(&info);
    Ok(ToolReply::status(&StoppedBody::new(&info, was_running)))
}
