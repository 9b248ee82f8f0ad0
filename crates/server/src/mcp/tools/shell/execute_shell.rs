//! `execute_shell`: run a script, waiting for its end or not.

use ostler_engine::StartRequest;
use serde_json::json;

use super::process::summary;
use super::{script, spent};
use crate::error::object;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::command::status::isolation;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::service::{Way, failed_to_start, launch, one_shot, recognised};
use crate::mcp::tools::walls;
use crate::mcp::waiting::{self, Options};
use crate::params::{Arguments, Kind, Parameter};

/// The longest time limit that can be asked for, in seconds: thirty days.
const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// The time limit of `sync`, in seconds.
const TIMEOUT_S: i64 = 30;

/// What runs a recognised service as a plain command.
const OTHERWISE: &str = "OSTLER_SERVICE=off before it";

pub(super) const DEFINITION: Definition = Definition {
    name: "execute_shell",
    title: "Execute Shell Command",
    about: "Execute a shell command with POSIX sh; scripts up to 128 KiB.\n\n\
            MODES:\n\
            - 'sync' (default): wait for completion, return stdout/stderr\n\
            - 'async'/'background': run in background, return process_id immediately\n\n\
            For async mode, use 'poll_process' to check status and view output.\n\n\
            Note: bash-specific commands like 'source' are not available - use '.' instead.",
    parameters: &[
        Parameter::required(
            "command",
            Kind::Text,
            "Shell command to execute (POSIX sh compatible), e.g. ls -la",
        ),
        Parameter::optional(
            "timeout",
            Kind::Integer(1, TIMEOUT_LIMIT_S),
            "Timeout in seconds, sync mode only; ends the whole process tree",
        )
        .or(TIMEOUT_S),
        Parameter::optional(
            "run_mode",
            Kind::Choice(&["sync", "async", "background"]),
            "Execution mode: 'sync' (wait for completion), 'async'/'background' (return \
             immediately)",
        )
        .or_text("sync"),
        Parameter::optional(
            "isolation",
            walls::LEVELS,
            "Isolation level: 'basic' (clean environment, whole-tree kill), 'medium' (default; \
             and resource limits), 'high' (sandboxing; refused where it is not available)",
        ),
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    match arguments.required_text("run_mode").as_str() {
        "sync" => Box::pin(to_its_end(call, arguments)).await,
        _ => Box::pin(in_background(call, arguments)).await,
    }
}

async fn to_its_end(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let mut request = script::request(call, &mut arguments)?;
    let limit = script::timeout(&arguments);
    // The default limit is none of a service's.
    request.timeout = limit.filter(|_| arguments.is_given("timeout"));
    if let Some(way) = recognised(call, &request, OTHERWISE) {
        return Box::pin(served(call, request, &way)).await;
    }
    request.timeout = limit;
    request.wait_for_place = limit;
    let waited = waiting::run(call, request, Options::to_end()).await?;
    spent::reply(call, &waited.info).await
}

/// Answers when the service it is runs; one that ended well was none (E4).
async fn served(call: Call<'_>, request: StartRequest, way: &Way) -> Answer {
    let launched = match launch(call, way.request(request), Options::default()).await {
        Ok(launched) => launched,
        Err(interrupted) => return failed_to_start(interrupted),
    };
    let info = &launched.waited.info;
    if one_shot(call, &launched.waited) {
        return spent::reply(call, info).await;
    }
    let fields = object(spent::fields(info));
    Ok(way.reply(call, launched, fields).await)
}

/// Answers as soon as the shell runs; in the words of document 003.
async fn in_background(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let timeout_given = arguments.given().any(|name| name == "timeout");
    let request = script::request(call, &mut arguments)?;
    let way = recognised(call, &request, OTHERWISE);
    let info = match &way {
        Some(way) => match launch(call, way.request(request), Options::at_once()).await {
            Ok(launched) => launched.waited.info,
            Err(interrupted) => return failed_to_start(interrupted),
        },
        None => call.give_out(consent::begin(call, request).await?),
    };
    let id = info.id.short();
    let (status, command) = (info.status().shell, summary(&info.spec.command.display()));
    let mut text = format!(
        "Process started in background.\n\
         Process ID: {id}\n\
         Status: {status}\n\
         Command: {command}\n\
         \n\
         Use 'poll_process' to check status and view output:\n\
         poll_process(process_id: \"{id}\", tail: {{src: \"stdout\", n: 20}})"
    );
    if timeout_given {
        text.push_str(
            "\nnote: timeout holds in sync mode only; this one runs until it ends or \
             kill_process ends it",
        );
    }
    if let Some(told) = way.and_then(|way| way.note()) {
        text.push('\n');
        text.push_str(&told);
    }
    for told in walls::notes(call, &info) {
        text.push_str("\nnote: ");
        text.push_str(&told);
    }
    let fields = json!({
        "process_id": id,
        "status": status,
        "command": command,
        "pid": info.state.pid,
        "started_at": info.state.started_at,
        "isolation": isolation(&info.spec.policy),
    });
    Ok(Reply::text(vec![text], fields))
}
