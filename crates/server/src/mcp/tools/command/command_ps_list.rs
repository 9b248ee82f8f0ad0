//! `command_ps_list`: what runs and what has ended, newest first.

use ostler_engine::ListFilter;
use ostler_model::status::ProcessStatus;
use serde_json::json;

use super::status::Listed;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::REPLY_CHARS;

/// Kept free for what stands around the list.
const FRAME_CHARS: usize = 400;

pub(super) const DEFINITION: Definition = Definition {
    name: "command_ps_list",
    title: "",
    about: "List processes, newest first.",
    parameters: &[
        Parameter::optional("labels", Kind::List, ""),
        Parameter::optional(
            "status",
            Kind::Choice(&["running", "completed", "failed", "terminated", "error"]),
            "",
        ),
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(async move { answer(call, arguments) }),
};

fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let filter = ListFilter {
        status: arguments
            .text("status")
            .and_then(|word| ProcessStatus::parse(&word)),
        labels: arguments.list("labels"),
        limit: None,
    };
    let found = call.engine.list(call.caller, &filter);
    let mut processes = Vec::new();
    let mut room = REPLY_CHARS - FRAME_CHARS;
    for info in &found {
        let entry = json!(Listed::from(info));
        let chars = entry.to_string().chars().count() + 1;
        let Some(left) = room.checked_sub(chars) else {
            break;
        };
        room = left;
        call.told(info);
        processes.push(entry);
    }
    let omitted = found.len() - processes.len();
    let mut body = json!({"processes": processes, "total": found.len()});
    if omitted > 0 {
        body["omitted"] = omitted.into();
        body["hint"] = "narrow with status or labels, or clean ended ones".into();
    }
    Ok(Reply::status(&body))
}
