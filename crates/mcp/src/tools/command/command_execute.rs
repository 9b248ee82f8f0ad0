//! `command_execute`: run one command, answer when it has ended.

use ostler_engine::{ExecutionInfo, StartRequest, WaitOutcome};
use ostler_model::duration;
use ostler_model::termination::{Termination, TerminationCause};
use serde_json::json;

use super::start_params::{self, BLOCK_LINES, OPT_OUT, TIMEOUT_LIMIT_S};
use crate::output::{OutputBlocks, read_output};
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::end_text;
use crate::tools::execution::fields::isolation_body;
use crate::tools::params::isolation;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::tools::service::{
    ServiceReason, detect_service, launch_and_wait, start_failure_reply, was_one_shot,
};
use crate::wait::{self, WaitOptions};
use ostler_interface::error::object;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The hint after a timeout.
const HINT: &str = "give a longer timeout, or use command_bg_start";

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_execute",
    title: "",
    about: "Run one program; answers output, exit code and time. No shell: no pipes, globs, &&. \
            timeout kills its process tree.",
    parameters: &[
        start_params::COMMAND,
        start_params::ARGS,
        start_params::DIRECTORY,
        start_params::STDIN,
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds",
        )
        .with_default(15),
        start_params::ENVS,
        start_params::ENCODING,
        BLOCK_LINES,
        start_params::ISOLATION,
        isolation::BACKEND,
        isolation::IMAGE,
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let block_lines = start_params::block_lines(&arguments);
    let mut request = start_params::start_request(call, &mut arguments)?;
    // The default limit does not apply to services.
    let limit = request
        .options
        .timeout
        .take_if(|_| !arguments.is_given("timeout"));
    if let Some(reason) = detect_service(call, &request, OPT_OUT) {
        return Box::pin(run_as_service(call, request, reason, block_lines)).await;
    }
    request.options.timeout = request.options.timeout.or(limit);
    request.options.queue_timeout = request.options.timeout;
    let waited = wait::run(call, request, WaitOptions::until_exit()).await?;
    command_reply(call, &waited, block_lines).await
}

/// Answers when the service runs; a command that ended successfully was no service.
async fn run_as_service(
    call: ToolCall<'_>,
    request: StartRequest,
    reason: ServiceReason,
    block_lines: usize,
) -> ToolResult {
    let launched =
        match launch_and_wait(call, reason.request(request), WaitOptions::default()).await {
            Ok(launched) => launched,
            Err(interrupted) => return start_failure_reply(interrupted),
        };
    let waited = &launched.waited;
    if was_one_shot(call, waited) {
        return command_reply(call, waited, block_lines).await;
    }
    let fields = object(execution_fields(&waited.info));
    Ok(reason.reply(call, launched, fields).await)
}

/// Output, exit code and time; or, where the command continues, how to proceed.
async fn command_reply(call: ToolCall<'_>, waited: &WaitOutcome, block_lines: usize) -> ToolResult {
    call.mark_notified(&waited.info);
    let mut output = read_output(call, &waited.info, block_lines).await?;
    let info = &waited.info;
    let mut blocks = output.take_blocks();
    blocks.push(match &info.state.ending {
        Some(ending) => ended_text(call, info, ending, &output).await,
        None => running_text(call, info, &output).await,
    });
    let mut reply = ToolReply::text(blocks, execution_fields(info));
    reply.fields.insert("cursor".to_owned(), json!(output.next));
    output.add_fields(&mut reply.fields);
    Ok(
        match info
            .state
            .ending
            .as_ref()
            .and_then(|ending| end_text::ending_failure(info, ending, HINT))
        {
            Some(failure) => reply.with_failure(failure),
            None => reply,
        },
    )
}

/// Exit code, time, and notes.
async fn ended_text(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    ending: &Termination,
    output: &OutputBlocks,
) -> String {
    let code = end_text::exit_code_text(ending);
    let mut text = format!(
        "exit_code: {code}\nexecution_time: {}",
        duration::seconds(info.duration())
    );
    match &ending.cause {
        TerminationCause::Stopped { .. } | TerminationCause::OutOfMemory => {
            end_text::add_note(&mut text, &ending.describe());
        }
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::TimedOut { .. }
        | TerminationCause::SpawnFailed { .. }
        | TerminationCause::Lost { .. } => {}
    }
    if info.state.leftovers > 0 {
        let count = info.state.leftovers;
        let note = format!(
            "{count} processes it left behind were ended; to keep one, start it with \
             command_bg_start"
        );
        end_text::add_note(&mut text, &note);
    }
    if output.is_cut() {
        let note = format!(
            "the whole output: command_ps_logs with pid {}",
            info.id.short()
        );
        end_text::add_note(&mut text, &note);
    }
    end_text::add_notes(&mut text, call, info, output).await;
    text
}

/// The text of an answer before the end.
async fn running_text(call: ToolCall<'_>, info: &ExecutionInfo, output: &OutputBlocks) -> String {
    let id = info.id.short();
    let limit = end_text::time_limit_text(info);
    let mut text = format!(
        "status: running\npid: {id}\nexecution_time: {} so far; {limit}\nnext: \
         command_ps_logs with pid {id}, since \"{}\" and follow_seconds, or command_ps_stop",
        duration::seconds(info.duration()),
        output.next
    );
    end_text::add_notes(&mut text, call, info, output).await;
    text
}

fn execution_fields(info: &ExecutionInfo) -> serde_json::Value {
    let ending = info.state.ending.as_ref();
    json!({
        "id": info.id.short(),
        "status": info.status().process,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": duration::as_seconds(info.duration()),
        "yielded": ending.is_none(),
        "isolation": isolation_body(&info.spec),
    })
}
