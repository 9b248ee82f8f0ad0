//! `list_processes`: what runs and what has ended, newest first.

use ostler_engine::{Info, ListFilter};
use serde_json::{Value, json};

use super::process::Process;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::REPLY_CHARS;

/// Kept free for what stands around the list.
const FRAME_CHARS: usize = 400;

pub(super) const DEFINITION: Definition = Definition {
    name: "list_processes",
    title: "List Processes",
    about: "List all background processes in the current session, newest first. Filter by \
            status: 'all' (default), 'running', or 'finished' (ended, however it ended).",
    parameters: &[Parameter::optional(
        "status_filter",
        Kind::Choice(&["all", "running", "finished"]),
        "Which to list",
    )
    .or_text("all")],
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
    let shown = shown(call, &chosen);
    body["total"] = chosen.len().into();
    if shown.len() < chosen.len() {
        body["omitted"] = (chosen.len() - shown.len()).into();
        body["hint"] = "the newest are shown; narrow with status_filter".into();
    }
    body["processes"] = shown.into();
    Ok(Reply::status(&body))
}

/// As many of the newest as an answer holds.
fn shown(call: Call<'_>, chosen: &[&Info]) -> Vec<Value> {
    let mut room = REPLY_CHARS - FRAME_CHARS;
    let mut entries = Vec::new();
    for info in chosen {
        let entry = json!(Process::from(*info));
        let chars = entry.to_string().chars().count() + 1;
        let Some(left) = room.checked_sub(chars) else {
            break;
        };
        room = left;
        call.told(info);
        entries.push(entry);
    }
    entries
}
