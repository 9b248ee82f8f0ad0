//! `list_processes`: what runs and what has ended, newest first.

use ostler_engine::{Info, ListFilter};
use serde_json::json;

use super::process::Process;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::window::newest_first;

pub(super) const DEFINITION: Definition = Definition {
    name: "list_processes",
    title: "List Processes",
    about: "List all background processes in the current session, newest first. Filter by \
            status: 'all' (default), 'running', or 'finished' (ended, however it ended).",
    parameters: &[
        Parameter::optional(
            "status_filter",
            Kind::Choice(&["all", "running", "finished"]),
            "Which to list",
        )
        .or_text("all"),
        CURSOR,
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(async move { answer(call, arguments) }),
};

fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let wanted = arguments.required_text("status_filter");
    let everything = call.engine.list(call.caller, &ListFilter::default());
    let (ended, running): (Vec<&Info>, Vec<&Info>) =
        everything.iter().partition(|info| info.state.is_finished());
    let of = |status: &str| {
        let same = ended.iter().filter(|info| info.status().shell == status);
        same.count()
    };
    let mut body = json!({
        "running": running.len(),
        "finished": ended.len(),
        "failed": of("failed"),
        "killed": of("killed"),
    });
    let chosen = match wanted.as_str() {
        "running" => running,
        "finished" => ended,
        _ => everything.iter().collect(),
    };
    body["total"] = chosen.len().into();
    let rest = listing::rest(chosen, newest_first, &mut arguments)?;
    let page = listing::executions(call, WHOLE_ANSWER, rest, |info| json!(Process::from(info)));
    listing::put(page, &mut body, "processes");
    Ok(Reply::status(&body))
}
