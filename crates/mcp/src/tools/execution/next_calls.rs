//! How to go on with an execution that runs: the calls of the tools that the client is offered.

use ostler_engine::{ExecutionInfo, WaitEnd, WaitOutcome};

use super::call_name;
use crate::profile::ToolSet;
use crate::tool_call::ToolCall;

/// The next calls to make, in brackets. A prompt that a person refused to answer is not for the
/// agent to answer.
pub(super) fn next_calls(call: ToolCall<'_>, waited: &WaitOutcome, is_refused: bool) -> String {
    let (tools, info) = (call.client_context.tools, &waited.info);
    let Some((wait, stop)) = wait_call(tools, info).zip(stop_call(tools, info)) else {
        return "[this profile has no tool that waits for it or ends it: profile core has]"
            .to_owned();
    };
    match &waited.end {
        WaitEnd::Prompt(prompt) if prompt.secret || is_refused => format!("[end it: {stop}]"),
        WaitEnd::Prompt(_)
        | WaitEnd::Exit
        | WaitEnd::Pattern(_)
        | WaitEnd::Ready
        | WaitEnd::NotReady(_)
        | WaitEnd::Output
        | WaitEnd::Idle
        | WaitEnd::TimedOut
        | WaitEnd::Nothing => format!("[go on: {wait}; end it: {stop}]"),
    }
}

fn wait_call(tools: ToolSet, info: &ExecutionInfo) -> Option<String> {
    let id = info.id.short();
    if tools.offers("process") {
        Some("process wait".to_owned())
    } else if is_service(info) && tools.offers("service") {
        let name = call_name(info);
        Some(format!("service status, name \"{name}\", wait_ms 45000"))
    } else if tools.offers("command_ps_logs") {
        Some(format!("command_ps_logs with pid {id}"))
    } else {
        let polled = || format!("poll_process with process_id \"{id}\"");
        tools.offers("poll_process").then(polled)
    }
}

fn stop_call(tools: ToolSet, info: &ExecutionInfo) -> Option<String> {
    let id = info.id.short();
    if is_service(info) && tools.offers("service") {
        let name = call_name(info);
        Some(format!("service stop, name \"{name}\""))
    } else if tools.offers("process_control") {
        Some("process_control stop".to_owned())
    } else if tools.offers("command_ps_stop") {
        Some(format!("command_ps_stop with pid {id}"))
    } else {
        let killed = || format!("kill_process with process_id \"{id}\"");
        tools.offers("kill_process").then(killed)
    }
}

fn is_service(info: &ExecutionInfo) -> bool {
    info.spec.lifetime.plan().is_some()
}
