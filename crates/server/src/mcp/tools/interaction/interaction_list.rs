//! `interaction_list`: the questions that wait for an answer.

use serde_json::json;

use super::question::Open;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::Arguments;
use crate::window::question_position;

pub(super) const DEFINITION: Definition = Definition {
    name: "interaction_list",
    title: "List open questions",
    about: "List the questions of this session's commands that wait for an answer, newest first: \
            id, kind, message, options, default, until when, and the process that asks.",
    parameters: &[CURSOR],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(async move { answer(call, arguments) }),
};

fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let open = call.engine.interactions(call.caller, true);
    let mut body = json!({"total": open.len()});
    let rest = listing::rest(&open, question_position, &mut arguments)?;
    let all = rest.len();
    let entries = rest
        .into_iter()
        .map(|(at, it)| (at, (None, json!(Open::from(it)))));
    let page = listing::window(call, WHOLE_ANSWER, entries, all);
    listing::put(page, &mut body, "interactions");
    Ok(Reply::status(&body))
}
