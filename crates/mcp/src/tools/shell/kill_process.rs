//! `kill_process`: kill a process with its tree.

use ostler_engine::StopRequest;
use serde::Serialize;

use super::process::{EndedInfo, PROCESS_ID, ShellProcess};
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::params::Arguments;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "kill_process",
    title: "Kill Process",
    about: "Kill a process and everything it started; answers when it has ended. What has ended \
            already stays as it is.",
    parameters: &[PROCESS_ID],
    hints: ToolHints::DESTRUCTIVE,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

/// The structured result.
#[derive(Debug, Serialize)]
struct KillBody {
    #[serde(flatten)]
    process: ShellProcess,
    #[serde(flatten)]
    ended: EndedInfo,
    /// Whether it was running.
    was_running: bool,
    /// OS pids that survived; normally empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors: Vec<u32>,
}

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("process_id");
    let was_running = !call.info(&id)?.state.is_finished();
    let request = StopRequest {
        force: true,
        grace: None,
        reason: Some("kill_process".to_owned()),
    };
    let info = call.engine.stop(call.caller, &id, request).await?;
    call.mark_notified(&info);
    Ok(ToolReply::status(&KillBody {
        process: ShellProcess::from(&info),
        ended: EndedInfo::from(&info),
        was_running,
        survivors: info.survivors.clone(),
    }))
}
