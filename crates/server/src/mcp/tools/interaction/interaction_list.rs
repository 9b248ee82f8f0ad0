//! `interaction_list`: the questions that wait for an answer.

use serde_json::{Value, json};

use super::question::Open;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::Arguments;
use crate::render::REPLY_CHARS;

/// Kept free for what stands around the list.
const FRAME_CHARS: usize = 400;

pub(super) const DEFINITION: Definition = Definition {
    name: "interaction_list",
    title: "List open questions",
    about: "List the questions of this session's commands that wait for an answer, newest first: \
            id, kind, message, options, default, until when, and the process that asks.",
    parameters: &[],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(async move { answer(call, &arguments) }),
};

#[expect(clippy::unnecessary_wraps, reason = "what every tool answers")]
fn answer(call: Call<'_>, _none: &Arguments) -> Answer {
    let open = call.engine.interactions(call.caller, true);
    let mut room = REPLY_CHARS - FRAME_CHARS;
    let mut told: Vec<Value> = Vec::new();
    for interaction in &open {
        let entry = json!(Open::from(interaction));
        let chars = entry.to_string().chars().count() + 1;
        let Some(left) = room.checked_sub(chars) else {
            break;
        };
        room = left;
        told.push(entry);
    }
    let omitted = open.len() - told.len();
    let mut body = json!({"interactions": told, "total": open.len()});
    if omitted > 0 {
        body["omitted"] = omitted.into();
        body["hint"] = "the newest are shown; answer or cancel some to see the others".into();
    }
    Ok(Reply::status(&body))
}
