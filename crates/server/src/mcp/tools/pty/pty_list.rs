//! `pty_list`: the sessions there are (C5, C7).

use ostler_engine::{Info, ListFilter};
use ostler_model::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::session::to_the_second;
use super::told::clip;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::screen::title;
use crate::mcp::tools::listing::{self, CURSOR, WHOLE_ANSWER};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::window::newest_first;

/// The most sessions of one list.
const ENTRIES: usize = 200;
/// Sessions whose title is told: it takes reading their output.
const TITLES: usize = 32;

pub(super) const DEFINITION: Definition = Definition {
    name: "pty_list",
    title: "List terminals",
    about: "List sessions, newest first.",
    parameters: &[
        Parameter::optional(
            "status",
            Kind::Choice(&["running", "exited", "killed"]),
            "Default all",
        ),
        CURSOR,
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

/// One session.
#[derive(Debug, Serialize)]
struct Summary {
    session: String,
    status: &'static str,
    command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    pid: Option<u32>,
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    output_length: u64,
    cols: u16,
    rows: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    /// Who types, where somebody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for_input: Option<String>,
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let wanted = arguments.text("status");
    let known = call.engine.list(call.caller, &ListFilter::default());
    let known = known.into_iter().filter(|info| info.size().is_some());
    let sessions: Vec<Info> = known.collect();
    let running = sessions.iter().filter(|info| !info.state.is_finished());
    let running = running.count();
    let is_wanted = |info: &&Info| {
        let wanted = wanted.as_deref();
        wanted.is_none_or(|status| info.status().session == status)
    };
    let chosen: Vec<&Info> = sessions.iter().filter(is_wanted).collect();
    let mut body = json!({"total": chosen.len(), "running": running});
    let rest = listing::rest(chosen, newest_first, &mut arguments)?;
    let all = rest.len();
    let mut entries = Vec::new();
    for (at, info) in rest.into_iter().take(ENTRIES) {
        let entry = json!(summary(call, info, entries.len() < TITLES).await);
        entries.push((at, (Some(info), entry)));
    }
    let page = listing::window(call, WHOLE_ANSWER, entries, all);
    listing::put(page, &mut body, "sessions");
    Ok(Reply::status(&body))
}

async fn summary(call: Call<'_>, info: &Info, with_title: bool) -> Summary {
    let id = info.id.short();
    let ending = info.state.ending.as_ref();
    let size = info.size();
    let view = if with_title {
        call.engine.screen(call.caller, &id).await.ok()
    } else {
        None
    };
    let holder = call.engine.lease_holder(call.caller, &id).ok().flatten();
    Summary {
        status: info.status().session,
        command: clip(&info.spec.command.display()),
        description: clip(&info.spec.description),
        labels: info.spec.labels.clone(),
        pid: info.state.pid,
        start_time: info.state.started_at.or(info.state.created_at),
        end_time: info.state.ended_at,
        exit_code: ending.and_then(|ending| ending.code),
        signal: ending
            .and_then(|ending| ending.signal)
            .map(|signal| signal.name()),
        output_length: info.output_end,
        cols: size.map_or(0, |size| size.cols),
        rows: size.map_or(0, |size| size.rows),
        title: view.as_ref().map(title).unwrap_or_default(),
        holder: holder.map(
            |holder| json!({"name": clip(&holder.name), "since": to_the_second(holder.since)}),
        ),
        waiting_for_input: info.state.prompt.as_deref().map(clip),
        session: id,
    }
}
