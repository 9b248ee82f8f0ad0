//! `command_ps_list`: what runs and what has ended, newest first.

use ostler_engine::ListFilter;
use ostler_model::status::ProcessStatus;
use serde_json::json;

use super::status::Summary;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::window::newest_first;

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
        CURSOR,
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
    let mut body = json!({"total": found.len()});
    let rest = listing::rest(&found, newest_first, &mut arguments)?;
    let page = listing::executions(call, WHOLE_ANSWER, rest, |info| json!(Summary::from(info)));
    listing::put(page, &mut body, "processes");
    Ok(Reply::status(&body))
}
