//! `command_bg_start`: start one command, answer at once.

use super::start_params::{self, OPT_OUT, TIMEOUT_LIMIT_S};
use super::status::StartedBody;
use crate::approval;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::params::isolation;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::tools::service::{detect_service, launch_and_wait, start_failure_reply};
use crate::wait::WaitOptions;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_bg_start",
    title: "",
    about: "Start one program in the background and answer its pid at once. No shell.",
    parameters: &[
        start_params::COMMAND,
        start_params::ARGS,
        start_params::DIRECTORY,
        Parameter::required("description", ParameterKind::Text, ""),
        Parameter::optional("labels", ParameterKind::List, ""),
        start_params::STDIN,
        start_params::ENVS,
        start_params::ENCODING,
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds; default none",
        ),
        start_params::ISOLATION,
        isolation::BACKEND,
        isolation::IMAGE,
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let mut request = start_params::start_request(call, &mut arguments)?;
    request.options.description = arguments.required_text("description");
    request.options.labels = arguments.list("labels");
    if let Some(reason) = detect_service(call, &request, OPT_OUT) {
        return match launch_and_wait(call, reason.request(request), WaitOptions::no_wait()).await {
            Ok(launched) => {
                let info = &launched.waited.info;
                Ok(ToolReply::status(&StartedBody::for_service(
                    info,
                    reason.note(),
                )))
            }
            Err(interrupted) => start_failure_reply(interrupted),
        };
    }
    let start_guard = approval::begin(call, request).await?;
    let info = call.publish_id(start_guard);
    Ok(ToolReply::status(&StartedBody::from(&info)))
}
