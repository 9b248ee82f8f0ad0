//! `kill_process`: end a process with its tree, at once.

use ostler_engine::StopRequest;
use serde::Serialize;

use super::process::{Ended, PROCESS_ID, Process};
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::Arguments;

pub(super) const DEFINITION: Definition = Definition {
    name: "kill_process",
    title: "Kill Process",
    about: "Kill a process and everything it started; answers when it has ended. What has ended \
            already stays as it is.",
    parameters: &[PROCESS_ID],
    hints: Hints::ENDS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

/// What is answered.
#[derive(Debug, Serialize)]
struct Killed {
    #[serde(flatten)]
    process: Process,
    #[serde(flatten)]
    ended: Ended,
    /// Whether it ran until now.
    was_running: bool,
    /// OS pids that survived; empty, or something is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors: Vec<u32>,
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("process_id");
    let was_running = !call.info(&id)?.state.is_finished();
    let request = StopRequest {
        force: true,
        grace: None,
        reason: Some("kill_process".to_owned()),
    };
    let info = call.engine.stop(call.caller, &id, request).await?;
    call.told(&info);
    Ok(Reply::status(&Killed {
        process: Process::from(&info),
        ended: Ended::from(&info),
        was_running,
        survivors: info.survivors.clone(),
    }))
}
