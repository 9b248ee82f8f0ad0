//! What a `sync` call answers: output, exit code and time; or, where it took longer than the
//! client waits, how to go on (F4).

use std::fmt::Write as _;

use ostler_engine::Info;
use ostler_model::ending::{Cause, Ending};
use ostler_model::{ErrorCode, Lifetime};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::output::{Printed, printed};
use crate::mcp::reply::Reply;
use crate::mcp::tools::command::status::{isolation, missing, seconds};
use crate::mcp::tools::registry::Answer;

/// Lines in one text block.
const BLOCK_LINES: usize = 500;

/// What is to be said of a script that `sync` ran, ended or not.
pub(super) async fn reply(call: Call<'_>, info: &Info) -> Answer {
    call.told(info);
    let mut printed = printed(call, info, BLOCK_LINES).await?;
    let mut blocks = printed.blocks();
    blocks.push(match &info.state.ending {
        Some(ending) => ended(info, ending, &printed),
        None => goes_on(info, &printed),
    });
    let mut reply = Reply::text(blocks, fields(info, &printed));
    printed.fields(&mut reply.fields);
    let failure = info.state.ending.as_ref();
    Ok(match failure.and_then(|ending| failed(info, ending)) {
        Some(failure) => reply.failed(failure),
        None => reply,
    })
}

fn ended(info: &Info, ending: &Ending, printed: &Printed) -> String {
    let code = match (ending.code, ending.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("null (ended by {signal})"),
        (None, None) => "null".to_owned(),
    };
    let took = seconds(info.duration());
    let mut text = format!("exit_code: {code}\nexecution_time: {took} s");
    let id = info.id.short();
    if matches!(ending.cause, Cause::Stopped { .. } | Cause::OutOfMemory) {
        note(&mut text, &ending.describe());
    }
    if let Some(told) = leftovers(info) {
        note(&mut text, &told);
    }
    if printed.is_cut() {
        let told = format!("to read more: read_process_output with process_id \"{id}\"");
        note(&mut text, &told);
    }
    notes(&mut text, info, printed);
    text
}

fn goes_on(info: &Info, printed: &Printed) -> String {
    let (id, status) = (info.id.short(), info.status().shell);
    let limit = match &info.spec.lifetime {
        Lifetime::Finite {
            timeout: Some(timeout),
            ..
        } => format!("its timeout of {} s still holds", seconds(*timeout)),
        Lifetime::Finite { timeout: None, .. } | Lifetime::Service { .. } => {
            "it has no timeout".to_owned()
        }
    };
    let so_far = seconds(info.duration());
    let mut text = format!(
        "status: {status}\nprocess_id: {id}\nexecution_time: {so_far} s so far; {limit}\nnext: \
         poll_process or kill_process with process_id \"{id}\""
    );
    notes(&mut text, info, printed);
    text
}

fn notes(text: &mut String, info: &Info, printed: &Printed) {
    for told in printed.notes.iter().chain(&info.state.degraded) {
        note(text, told);
    }
    if let Some(told) = missing(&info.spec.policy) {
        note(text, &told);
    }
}

fn note(text: &mut String, told: &str) {
    // Writing to a string cannot fail.
    let _written = write!(text, "\nnote: {told}").is_ok();
}

/// What became of processes the script left behind, and how to keep them.
pub(super) fn leftovers(info: &Info) -> Option<String> {
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

/// Ends that are no answer: its time ran out, or nobody can say how it ended.
fn failed(info: &Info, ending: &Ending) -> Option<Failure> {
    match &ending.cause {
        Cause::TimedOut { .. } => {
            let message = format!(
                "the command ran out of time after {} s and was ended with its process tree; \
                 its output so far follows",
                seconds(info.duration())
            );
            let hint = "give a longer timeout, or use run_mode \"background\"";
            Some(Failure::new(ErrorCode::CommandTimeout, message).with_hint(hint))
        }
        Cause::SpawnFailed { .. } | Cause::Lost { .. } => {
            Some(Failure::new(ErrorCode::CommandExecution, ending.describe()))
        }
        Cause::Exited | Cause::Signaled | Cause::Stopped { .. } | Cause::OutOfMemory => None,
    }
}

fn fields(info: &Info, printed: &Printed) -> Value {
    let ending = info.state.ending.as_ref();
    json!({
        "process_id": info.id.short(),
        "status": info.status().shell,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": seconds(info.duration()),
        "yielded": !info.state.is_finished(),
        "cursor": printed.next,
        "isolation": isolation(&info.spec.policy),
    })
}
