//! `command_execute`: run one command, answer when it has ended.

use ostler_engine::{Info, StartRequest, Waited};
use ostler_model::ending::{Cause, Ending};
use serde_json::json;

use super::starting::{self, BLOCK_LINES, OTHERWISE, TIMEOUT_LIMIT_S};
use super::status::seconds;
use crate::error::object;
use crate::mcp::context::Call;
use crate::mcp::output::{Printed, printed};
use crate::mcp::reply::Reply;
use crate::mcp::tools::ends;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::service::{Way, failed_to_start, launch, one_shot, recognised};
use crate::mcp::waiting::{self, Options};
use crate::params::{Arguments, Kind, Parameter};

/// What to do when its time ran out.
const HINT: &str = "give a longer timeout, or use command_bg_start";

pub(super) const DEFINITION: Definition = Definition {
    name: "command_execute",
    title: "",
    about: "Run one program; answers output, exit code and time. No shell: no pipes, globs, &&. \
            timeout kills its process tree.",
    parameters: &[
        starting::COMMAND,
        starting::ARGS,
        starting::DIRECTORY,
        starting::STDIN,
        Parameter::optional("timeout", Kind::Integer(1, TIMEOUT_LIMIT_S), "Seconds").or(15),
        starting::ENVS,
        starting::ENCODING,
        BLOCK_LINES,
        starting::ISOLATION,
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let block_lines = starting::block_lines(&arguments);
    let mut request = starting::request(call, &mut arguments)?;
    // The default limit is none of a service's.
    let limit = request.timeout.take_if(|_| !arguments.is_given("timeout"));
    if let Some(way) = recognised(call, &request, OTHERWISE) {
        return Box::pin(served(call, (request, way), block_lines)).await;
    }
    request.timeout = request.timeout.or(limit);
    request.wait_for_place = request.timeout;
    let waited = waiting::run(call, request, Options::to_end()).await?;
    told(call, &waited, block_lines).await
}

/// Answers when the service it is runs; one that ended well was none (E4).
async fn served(call: Call<'_>, (request, way): (StartRequest, Way), block_lines: usize) -> Answer {
    let launched = match launch(call, way.request(request), Options::default()).await {
        Ok(launched) => launched,
        Err(interrupted) => return failed_to_start(interrupted),
    };
    let waited = &launched.waited;
    if one_shot(call, waited) {
        return told(call, waited, block_lines).await;
    }
    let fields = object(fields(&waited.info));
    Ok(way.reply(call, launched, fields).await)
}

/// What it printed, exit code and time; or, where it goes on, how to.
async fn told(call: Call<'_>, waited: &Waited, block_lines: usize) -> Answer {
    call.told(&waited.info);
    let mut printed = printed(call, &waited.info, block_lines).await?;
    let info = &waited.info;
    let mut blocks = printed.blocks();
    blocks.push(match &info.state.ending {
        Some(ending) => ended(call, (info, ending), &printed).await,
        None => yielded(call, info, &printed).await,
    });
    let mut reply = Reply::text(blocks, fields(info));
    reply
        .fields
        .insert("cursor".to_owned(), json!(printed.next));
    printed.fields(&mut reply.fields);
    Ok(
        match info
            .state
            .ending
            .as_ref()
            .and_then(|ending| ends::failure(info, ending, HINT))
        {
            Some(failure) => reply.failed(failure),
            None => reply,
        },
    )
}

/// Exit code, time, and what else is to be known.
async fn ended(call: Call<'_>, (info, ending): (&Info, &Ending), printed: &Printed) -> String {
    let code = ends::exit_code(ending);
    let mut text = format!(
        "exit_code: {code}\nexecution_time: {} s",
        seconds(info.duration())
    );
    match &ending.cause {
        Cause::Stopped { .. } | Cause::OutOfMemory => {
            ends::note(&mut text, &ending.describe());
        }
        Cause::Exited
        | Cause::Signaled
        | Cause::TimedOut { .. }
        | Cause::SpawnFailed { .. }
        | Cause::Lost { .. } => {}
    }
    if info.state.leftovers > 0 {
        let count = info.state.leftovers;
        let told = format!(
            "{count} processes it left behind were ended; to keep one, start it with \
             command_bg_start"
        );
        ends::note(&mut text, &told);
    }
    if printed.is_cut() {
        let told = format!(
            "the whole output: command_ps_logs with pid {}",
            info.id.short()
        );
        ends::note(&mut text, &told);
    }
    ends::notes(&mut text, (call, info), printed).await;
    text
}

/// What is said when the answer comes before the end (F4).
async fn yielded(call: Call<'_>, info: &Info, printed: &Printed) -> String {
    let id = info.id.short();
    let limit = ends::time_limit(info);
    let mut text = format!(
        "status: running\npid: {id}\nexecution_time: {} s so far; {limit}\nnext: \
         command_ps_logs with pid {id}, since \"{}\" and follow_seconds, or command_ps_stop",
        seconds(info.duration()),
        printed.next
    );
    ends::notes(&mut text, (call, info), printed).await;
    text
}

fn fields(info: &Info) -> serde_json::Value {
    let ending = info.state.ending.as_ref();
    json!({
        "id": info.id.short(),
        "status": info.status().process,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": seconds(info.duration()),
        "yielded": ending.is_none(),
        "isolation": super::status::isolation(&info.spec.policy),
    })
}
