//! What a `sync` call answers: output, exit code and time; or, where it took longer than the
//! client waits, how to go on (F4).

use ostler_engine::Info;
use ostler_model::ending::{Cause, Ending};
use serde_json::{Value, json};

use crate::mcp::context::Call;
use crate::mcp::output::{Printed, printed};
use crate::mcp::reply::Reply;
use crate::mcp::tools::command::status::{isolation, seconds};
use crate::mcp::tools::ends;
use crate::mcp::tools::registry::Answer;

/// Lines in one text block.
const BLOCK_LINES: usize = 500;
/// What to do when its time ran out.
const HINT: &str = "give a longer timeout, or use run_mode \"background\"";

/// What is to be said of a script that `sync` ran, ended or not.
pub(super) async fn reply(call: Call<'_>, info: &Info) -> Answer {
    call.told(info);
    let mut printed = printed(call, info, BLOCK_LINES).await?;
    let mut blocks = printed.blocks();
    blocks.push(match &info.state.ending {
        Some(ending) => ended(call, (info, ending), &printed).await,
        None => goes_on(call, info, &printed).await,
    });
    let mut reply = Reply::text(blocks, fields(info));
    reply
        .fields
        .insert("cursor".to_owned(), json!(printed.next));
    printed.fields(&mut reply.fields);
    let failure = info.state.ending.as_ref();
    Ok(
        match failure.and_then(|ending| ends::failure(info, ending, HINT)) {
            Some(failure) => reply.failed(failure),
            None => reply,
        },
    )
}

async fn ended(call: Call<'_>, (info, ending): (&Info, &Ending), printed: &Printed) -> String {
    let code = ends::exit_code(ending);
    let took = seconds(info.duration());
    let mut text = format!("exit_code: {code}\nexecution_time: {took} s");
    let id = info.id.short();
    if matches!(ending.cause, Cause::Stopped { .. } | Cause::OutOfMemory) {
        ends::note(&mut text, &ending.describe());
    }
    if let Some(told) = leftovers(info) {
        ends::note(&mut text, &told);
    }
    if printed.is_cut() {
        let told = format!("to read more: read_process_output with process_id \"{id}\"");
        ends::note(&mut text, &told);
    }
    ends::notes(&mut text, (call, info), printed).await;
    text
}

async fn goes_on(call: Call<'_>, info: &Info, printed: &Printed) -> String {
    let (id, status) = (info.id.short(), info.status().shell);
    let limit = ends::time_limit(info);
    let so_far = seconds(info.duration());
    let mut text = format!(
        "status: {status}\nprocess_id: {id}\nexecution_time: {so_far} s so far; {limit}\nnext: \
         poll_process or kill_process with process_id \"{id}\""
    );
    ends::notes(&mut text, (call, info), printed).await;
    text
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

/// What is known of one, for programs.
pub(super) fn fields(info: &Info) -> Value {
    let ending = info.state.ending.as_ref();
    json!({
        "process_id": info.id.short(),
        "status": info.status().shell,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": seconds(info.duration()),
        "yielded": !info.state.is_finished(),
        "cursor": info.cursor(),
        "isolation": isolation(&info.spec.policy),
    })
}
