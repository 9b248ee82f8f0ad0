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
use crate::mcp::tools::service;
use crate::render::{REPLY_CHARS, clamped};
use crate::wire::InfoBody;

/// Kept free for what stands around the entries.
const FRAME_CHARS: usize = 400;
/// The most characters of a command or description in a list.
const SUMMARY_CHARS: usize = 200;
/// The most characters of one text in a detail.
const FIELD_CHARS: usize = 2_000;

/// One entry of a list.
#[derive(Debug, Serialize)]
struct Listed {
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

/// What runs and has ended, newest first.
pub(super) fn list(call: Call<'_>, labels: Vec<String>) -> Reply {
    let filter = ListFilter {
        labels,
        ..ListFilter::default()
    };
    let found = call.engine.list(call.caller, &filter);
    let running = found.iter().filter(|info| !info.state.is_finished());
    let running = running.count();
    let entries = found.iter().map(|info| {
        let entry = json!(Listed::from(info));
        (info, entry)
    });
    let processes = fitting(call, entries);
    let mut body = json!({"processes": processes, "total": found.len(), "running": running});
    let omitted = found.len() - processes.len();
    if omitted > 0 {
        body["omitted"] = omitted.into();
        body["hint"] = "narrow with labels, or clean ended ones".into();
    }
    Reply::status(&body)
}

/// Everything known of each id.
pub(super) fn details(call: Call<'_>, ids: &[String]) -> Result<Reply, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let info = call.info(id);
        found.push(info.map_err(|error| about(id, error.into()))?);
    }
    let entries = found.iter().map(|info| {
        let mut body = json!(InfoBody::from(info));
        shorten(&mut body);
        (info, body)
    });
    let processes = fitting(call, entries);
    let mut body = json!({"processes": processes});
    let omitted = ids.len() - processes.len();
    if omitted > 0 {
        body["omitted"] = json!(ids[processes.len()..]);
        body["hint"] = "ask for fewer ids at once".into();
    }
    Ok(Reply::status(&body))
}

/// As many entries as a reply holds; these are told.
fn fitting<'a>(call: Call<'_>, entries: impl Iterator<Item = (&'a Info, Value)>) -> Vec<Value> {
    let mut fitting = Vec::new();
    let mut room = REPLY_CHARS - FRAME_CHARS;
    for (info, entry) in entries {
        let chars = entry.to_string().chars().count() + 1;
        let Some(left) = room.checked_sub(chars) else {
            break;
        };
        room = left;
        call.told(info);
        fitting.push(entry);
    }
    fitting
}

impl From<&Info> for Listed {
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
