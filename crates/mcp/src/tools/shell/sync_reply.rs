//! The answer of a `sync` call: output, exit code and time; or, where the script takes longer than
//! the call may, how to continue.

use ostler_engine::ExecutionInfo;
use ostler_model::duration;
use ostler_model::termination::{Termination, TerminationCause};
use serde_json::{Value, json};

use crate::output::{OutputBlocks, read_output};
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::end_text;
use crate::tools::execution::fields::isolation_body;
use crate::tools::registry::ToolResult;

/// Lines in one text block.
const BLOCK_LINES: usize = 500;
/// The hint after a timeout.
const HINT: &str = "give a longer timeout, or use run_mode \"background\"";

/// The answer for a script run by `sync`, ended or not.
pub(super) async fn sync_reply(call: ToolCall<'_>, info: &ExecutionInfo) -> ToolResult {
    call.mark_notified(info);
    let mut output = read_output(call, info, BLOCK_LINES).await?;
    let mut blocks = output.take_blocks();
    blocks.push(match &info.state.ending {
        Some(ending) => ended_text(call, info, ending, &output).await,
        None => running_text(call, info, &output).await,
    });
    let mut reply = ToolReply::text(blocks, process_fields(info));
    reply.fields.insert("cursor".to_owned(), json!(output.next));
    output.add_fields(&mut reply.fields);
    let failure = info.state.ending.as_ref();
    Ok(
        match failure.and_then(|ending| end_text::ending_failure(info, ending, HINT)) {
            Some(failure) => reply.with_failure(failure),
            None => reply,
        },
    )
}

async fn ended_text(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    ending: &Termination,
    output: &OutputBlocks,
) -> String {
    let code = end_text::exit_code_text(ending);
    let took = duration::seconds(info.duration());
    let mut text = format!("exit_code: {code}\nexecution_time: {took}");
    let id = info.id.short();
    if matches!(
        ending.cause,
        TerminationCause::Stopped { .. } | TerminationCause::OutOfMemory
    ) {
        end_text::add_note(&mut text, &ending.describe());
    }
    if let Some(line) = leftovers_note(info) {
        end_text::add_note(&mut text, &line);
    }
    if output.is_cut() {
        let line =
            format!("to read more: read_process_output with process_id \"{id}\" and a cursor");
        end_text::add_note(&mut text, &line);
    }
    end_text::add_notes(&mut text, call, info, output).await;
    text
}

async fn running_text(call: ToolCall<'_>, info: &ExecutionInfo, output: &OutputBlocks) -> String {
    let (id, status) = (info.id.short(), info.status().shell);
    let limit = end_text::time_limit_text(info);
    let so_far = duration::seconds(info.duration());
    let mut text = format!(
        "status: {status}\nprocess_id: {id}\nexecution_time: {so_far} so far; {limit}\nnext: \
         poll_process or kill_process with process_id \"{id}\""
    );
    end_text::add_notes(&mut text, call, info, output).await;
    text
}

/// The outcome of processes that the script left, and how to keep them.
pub(super) fn leftovers_note(info: &ExecutionInfo) -> Option<String> {
    let left = match info.state.leftovers {
        0 => return None,
        1 => "1 process it left behind was ended".to_owned(),
        count => format!("{count} processes it left behind were ended"),
    };
    Some(format!(
        "{left}; to keep one, make it the last command (exec, without &) of a script with \
         run_mode 'background'"
    ))
}

/// The state of one, as JSON.
pub(super) fn process_fields(info: &ExecutionInfo) -> Value {
    let ending = info.state.ending.as_ref();
    json!({
        "process_id": info.id.short(),
        "status": info.status().shell,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": duration::as_seconds(info.duration()),
        "yielded": !info.state.is_finished(),
        "cursor": info.cursor(),
        "isolation": isolation_body(&info.spec),
    })
}
