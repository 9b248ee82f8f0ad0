//! Lists and details of executions, without their output.

use ostler_engine::{ExecutionInfo, ListFilter};
use ostler_model::Timestamp;
use ostler_model::duration;
use ostler_model::status::ProcessStatus;
use ostler_render::truncated;
use serde::Serialize;
use serde_json::{Value, json};

use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::call_name;
use crate::tools::execution::fields::summary_text;
use crate::tools::listing::{self, HALF_ANSWER, WHOLE_ANSWER};
use crate::tools::params::action::with_id;
use ostler_interface::convert::execution_body;
use ostler_interface::error::ApiError;
use ostler_interface::pagination::{ListPosition, running_first};
use ostler_interface::params::Arguments;

/// The most characters of one text in a detail.
const FIELD_CHARS: usize = 2_000;

/// One entry of a list.
#[derive(Debug, Serialize)]
struct ProcessSummary {
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

/// A page of running executions, then ended ones, each newest first.
pub(super) fn list(call: ToolCall<'_>, arguments: &mut Arguments) -> Result<ToolReply, ApiError> {
    let status = arguments.text("status");
    let filter = ListFilter {
        labels: arguments.list("labels"),
        ..ListFilter::default()
    };
    let mut executions = call.engine.list(call.caller, &filter);
    executions.retain(|info| match status.as_deref() {
        Some("running") => !info.state.is_finished(),
        Some("ended") => info.state.is_finished(),
        Some(_) => info.error_message().is_some(),
        None => true,
    });
    let running = executions.iter().filter(|info| !info.state.is_finished());
    let mut body = json!({"total": executions.len(), "running": running.count()});
    let remaining = listing::rest_after_cursor(&executions, running_first, arguments)?;
    let page = listing::execution_page(call, HALF_ANSWER, remaining, |info| {
        json!(ProcessSummary::from(info))
    });
    listing::put_page(page, &mut body, "processes");
    Ok(ToolReply::status(&body))
}

/// The details of each id.
pub(super) fn details(call: ToolCall<'_>, ids: &[String]) -> Result<ToolReply, ApiError> {
    let mut executions = Vec::with_capacity(ids.len());
    for id in ids {
        let info = call.info(id);
        executions.push(info.map_err(|error| with_id(id, error.into()))?);
    }
    let entries = executions.iter().enumerate().map(|(index, info)| {
        let mut body = json!(execution_body(info));
        truncate_fields(&mut body);
        (ListPosition::by(index), (Some(info), body))
    });
    let page = listing::fill_page(call, WHOLE_ANSWER, entries, executions.len());
    let shown = page.entries.len();
    let mut body = json!({"processes": page.entries});
    if page.remaining > 0 {
        body["omitted"] = json!(ids[shown..]);
        body["hint"] = "ask for fewer ids at once".into();
    }
    Ok(ToolReply::status(&body))
}

impl From<&ExecutionInfo> for ProcessSummary {
    fn from(info: &ExecutionInfo) -> Self {
        let ending = info.state.ending.as_ref();
        Self {
            id: info.id.short(),
            status: info.status().process,
            command: summary_text(&info.spec.command.display()),
            description: summary_text(&info.spec.description),
            labels: info.spec.labels.clone(),
            start_time: info.state.started_at.or(info.state.created_at),
            duration: duration::as_seconds(info.duration()),
            exit_code: ending.and_then(|ending| ending.code),
            ending: info.error_message(),
            waiting_for_input: info.state.prompt.as_deref().map(summary_text),
            service: service_summary(info),
        }
    }
}

/// A summary of its state as a service.
fn service_summary(info: &ExecutionInfo) -> Option<Value> {
    info.spec.lifetime.plan()?;
    let state = &info.state;
    let mut fields = json!({
        "name": call_name(info),
        "status": info.status().service,
    });
    if let Some(url) = state.url.as_deref().filter(|_| !state.is_finished()) {
        fields["url"] = summary_text(url).into();
    }
    let mut ports: Vec<u16> = state.ports.iter().map(|it| it.address.port()).collect();
    ports.dedup();
    if !ports.is_empty() && !state.is_finished() {
        fields["ports"] = json!(ports);
    }
    Some(fields)
}

/// Cuts oversized fields.
fn truncate_fields(body: &mut Value) {
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
            let cut = truncated(&text, FIELD_CHARS);
            body[field] = if body[field].is_array() {
                json!([cut])
            } else {
                cut.into()
            };
        }
    }
}
