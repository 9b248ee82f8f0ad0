//! Lists and details: what is known of executions, without their output.

use ostler_engine::{Info, ListFilter};
use ostler_model::Timestamp;
use ostler_model::status::ProcessStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::action::about;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::command::status::seconds;
use crate::mcp::tools::listing::{self, HALF_ANSWER, WHOLE_ANSWER};
use crate::mcp::tools::service;
use crate::params::Arguments;
use crate::render::clamped;
use crate::window::{Position, running_first};
use crate::wire::InfoBody;

/// The most characters of a command or description in a list.
const SUMMARY_CHARS: usize = 200;
/// The most characters of one text in a detail.
const FIELD_CHARS: usize = 2_000;

/// One entry of a list.
#[derive(Debug, Serialize)]
struct Summary {
    id: String,
    status: ProcessStatus,
    command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    start_time: Option<Timestamp>,
    duration: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for_input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Value>,
}

/// What runs, then what has ended, the newest first; a window of it.
pub(super) fn list(call: Call<'_>, arguments: &mut Arguments) -> Result<Reply, Failure> {
    let status = arguments.text("status");
    let filter = ListFilter {
        labels: arguments.list("labels"),
        ..ListFilter::default()
    };
    let mut found = call.engine.list(call.caller, &filter);
    found.retain(|info| match status.as_deref() {
        Some("running") => !info.state.is_finished(),
        Some("ended") => info.state.is_finished(),
        Some(_) => info.error_message().is_some(),
        None => true,
    });
    let running = found.iter().filter(|info| !info.state.is_finished());
    let mut body = json!({"total": found.len(), "running": running.count()});
    let rest = listing::rest(&found, running_first, arguments)?;
    let page = listing::executions(call, HALF_ANSWER, rest, |info| json!(Summary::from(info)));
    listing::put(page, &mut body, "processes");
    Ok(Reply::status(&body))
}

/// Everything known of each id.
pub(super) fn details(call: Call<'_>, ids: &[String]) -> Result<Reply, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let info = call.info(id);
        found.push(info.map_err(|error| about(id, error.into()))?);
    }
    let entries = found.iter().enumerate().map(|(place, info)| {
        let mut body = json!(InfoBody::from(info));
        shorten(&mut body);
        (Position::by(place), (Some(info), body))
    });
    let page = listing::window(call, WHOLE_ANSWER, entries, found.len());
    let shown = page.entries.len();
    let mut body = json!({"processes": page.entries});
    if page.left > 0 {
        body["omitted"] = json!(ids[shown..]);
        body["hint"] = "ask for fewer ids at once".into();
    }
    Ok(Reply::status(&body))
}

impl From<&Info> for Summary {
    fn from(info: &Info) -> Self {
        let ending = info.state.ending.as_ref();
        Self {
            id: info.id.short(),
            status: info.status().process,
            command: clamped(&info.spec.command.display(), SUMMARY_CHARS),
            description: clamped(&info.spec.description, SUMMARY_CHARS),
            labels: info.spec.labels.clone(),
            start_time: info.state.started_at.or(info.state.created_at),
            duration: seconds(info.duration()),
            exit_code: ending.and_then(|ending| ending.code),
            ending: info.error_message(),
            waiting_for_input: info
                .state
                .prompt
                .as_deref()
                .map(|it| clamped(it, SUMMARY_CHARS)),
            service: service(info),
        }
    }
}

/// What it is as a service, in short.
fn service(info: &Info) -> Option<Value> {
    info.spec.lifetime.plan()?;
    let state = &info.state;
    let mut told = json!({
        "name": service::name(info),
        "status": info.status().service,
    });
    if let Some(url) = state.url.as_deref().filter(|_| !state.is_finished()) {
        told["url"] = clamped(url, SUMMARY_CHARS).into();
    }
    let mut ports: Vec<u16> = state.ports.iter().map(|it| it.address.port()).collect();
    ports.dedup();
    if !ports.is_empty() && !state.is_finished() {
        told["ports"] = json!(ports);
    }
    Some(told)
}

/// Cuts what a caller made huge.
fn shorten(body: &mut Value) {
    for field in [
        "argv",
        "command",
        "description",
        "directory",
        "labels",
        "degraded",
    ] {
        let text = body[field]
            .as_str()
            .map_or_else(|| body[field].to_string(), str::to_owned);
        if text.chars().count() > FIELD_CHARS {
            let cut = clamped(&text, FIELD_CHARS);
            body[field] = if body[field].is_array() {
                json!([cut])
            } else {
                cut.into()
            };
        }
    }
}
