//! The outcome of a start, or of a wait for readiness, as text and as structured content.

use std::time::Duration;

use ostler_engine::{ExecutionInfo, ServiceInfo, WaitEnd, WaitOutcome};
use ostler_journal::LineQuery;
use ostler_model::ServiceStage;
use ostler_model::duration;
use ostler_render::service;
use ostler_render::{ExcerptBudget, clean, truncated};
use serde_json::{Value, json};

use super::launch_wait::ServiceLaunch;
use crate::output::read_selected;
use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::execution::isolation_notes;
use crate::tools::execution::{ServiceToolBody, call_name};
use crate::tools::registry::ToolResult;
use ostler_interface::convert::service_report;

/// Lines of output shown of a failed one.
const LAST_LINES: u64 = 30;
/// The most characters of those lines.
const LAST_CHARS: usize = 4_000;
/// The most characters of one line about a service.
const LINE_CHARS: usize = 400;

/// The outcome of a start or a wait.
#[derive(Debug)]
pub(in crate::tools) struct ServiceOutcome {
    pub(in crate::tools) launch: ServiceLaunch,
    /// A note, on its own line.
    pub(in crate::tools) note: Option<String>,
    /// Whether it ran already; none where that does not apply.
    pub(in crate::tools) reused: Option<bool>,
    /// Whether the wait was for its successful end.
    pub(in crate::tools) completes: bool,
}

/// The state of a service after a wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReadyState {
    /// Ready, or running without a readiness check.
    Ready,
    /// It ended successfully, as required.
    Completed,
    /// It is still starting.
    Starting,
    /// It cannot become ready, or was not ready in time.
    NotReady(String),
}

/// The answer, as text and structured content.
#[derive(Debug)]
pub(in crate::tools) struct ServiceReply {
    pub(in crate::tools) text: String,
    pub(in crate::tools) fields: Value,
}

impl ServiceOutcome {
    /// The text and structured content; the reported services count as notified.
    pub(in crate::tools) async fn into_reply(self, call: ToolCall<'_>) -> ServiceReply {
        let info = &self.launch.waited.info;
        call.mark_notified(info);
        let standing = ready_state(&self.launch, self.completes);
        let mut lines = match &standing {
            ReadyState::Completed => vec![format!("{} completed: exit code 0", call_name(info))],
            ReadyState::Ready => ready_lines(call, info).await,
            ReadyState::Starting => starting_lines(call, info).await,
            ReadyState::NotReady(reason) => not_ready_lines(call, info, reason).await,
        };
        lines.extend(self.note.clone());
        let notes = isolation_notes(call, info);
        lines.extend(notes.iter().map(|note| format!("note: {note}")));
        let lines = lines.iter().map(|line| truncated(&clean(line), LINE_CHARS));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if let ReadyState::NotReady(_) = standing {
            text.push_str(&last_output(call, info).await);
        }
        if let Some(next) = next_calls(call, info, &standing) {
            text.push('\n');
            text.push_str(&next);
        }
        let fields = self.reply_fields(&standing, &text);
        ServiceReply { text, fields }
    }

    fn reply_fields(&self, standing: &ReadyState, text: &str) -> Value {
        let mut fields = json!(ServiceToolBody::from(&self.launch.waited.info));
        fields["event"] = match standing {
            ReadyState::Ready => "service_ready",
            ReadyState::Completed => "service_completed",
            ReadyState::Starting => "service_started",
            ReadyState::NotReady(_) => "service_failed",
        }
        .into();
        if let ReadyState::NotReady(reason) = standing {
            fields["reason"] = clean(reason).into();
        }
        if let Some(reused) = self.reused {
            fields["reused"] = reused.into();
        }
        if let Some(note) = &self.note {
            fields["note"] = note.as_str().into();
        }
        fields["message"] = text.into();
        fields
    }
}

impl ServiceReply {
    /// As the answer of a status tool.
    pub(super) fn into_tool_reply(self) -> ToolReply {
        ToolReply {
            blocks: vec![self.text],
            structured: Some(self.fields),
            ..ToolReply::default()
        }
    }
}

/// The answer about a service that the call waited no longer for: the engine starts it.
pub(super) fn pending_reply(service: &ServiceInfo) -> ServiceReply {
    let name = &service.name;
    let condition = service.pending.as_deref();
    let waits = condition.map_or_else(String::new, |it| format!(": it waits for {it}"));
    let lines = [
        format!("{name} is {}{waits}.", service.status()),
        "It is started then without a further call, unless this session ends before.".to_owned(),
        format!(
            "[go on: this call again, wait_ms 45000; look: service why, name \"{name}\"; end it: \
             service stop]"
        ),
    ];
    let lines = lines.iter().map(|line| truncated(&clean(line), LINE_CHARS));
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut fields = json!(ServiceToolBody::from(service));
    fields["event"] = "service_pending".into();
    fields["message"] = text.as_str().into();
    ServiceReply { text, fields }
}

/// The answer of a start that could not be carried out.
pub(in crate::tools) fn start_failure_reply(interrupted: ToolInterrupt) -> ToolResult {
    match interrupted {
        ToolInterrupt::Failed(failure) => {
            let mut text = service::render_not_started(&failure.message());
            if let Some(hint) = &failure.hint {
                text.push_str(&format!("\nhint: {hint}"));
            }
            Ok(ToolReply::worded(text, failure))
        }
        ToolInterrupt::BecameTask(_) | ToolInterrupt::ElicitNeeded(_) => Err(interrupted),
    }
}

fn ready_state(launched: &ServiceLaunch, completes: bool) -> ReadyState {
    let WaitOutcome { info, end: why, .. } = &launched.waited;
    match (why, &info.state.ending) {
        (_, Some(ending)) if completes && ending.is_success() => ReadyState::Completed,
        (_, None) if completes && launched.timed_out.is_none() => ReadyState::Starting,
        (WaitEnd::NotReady(seen), _) => ReadyState::NotReady(seen.clone()),
        (_, Some(_)) => ReadyState::NotReady(ended_text(info)),
        (WaitEnd::Ready, None) => ReadyState::Ready,
        (_, None) if is_up(info) => ReadyState::Ready,
        (_, None) => match launched.timed_out {
            Some(timeout) => ReadyState::NotReady(too_late_text(info, timeout)),
            None => ReadyState::Starting,
        },
    }
}

/// Whether it is ready, or running without a readiness check.
pub(super) fn is_up(info: &ExecutionInfo) -> bool {
    matches!(
        info.state.stage,
        Some(ServiceStage::Ready | ServiceStage::Running)
    )
}

fn ended_text(info: &ExecutionInfo) -> String {
    let how = info.error_message();
    service::end_reason(how.as_deref(), info.state.ready_evidence.is_some())
}

fn too_late_text(info: &ExecutionInfo, timeout: Duration) -> String {
    let ms = duration::as_millis(timeout);
    let plan = info.spec.lifetime.plan();
    plan.map_or_else(
        || format!("not ready within {ms}ms"),
        |plan| service::timeout_reason(&plan.ready.when, ms),
    )
}

/// Lines about one that is ready or starting.
fn started_lines(info: &ExecutionInfo) -> Vec<String> {
    let id = info.id.short();
    let summary = service_report(&id, info);
    let mut lines: Vec<String> = service::render_started(&summary)
        .lines()
        .map(str::to_owned)
        .collect();
    if let Some(what) = &summary.waits_for {
        lines.push(format!("It waits for {what}."));
    }
    lines
}

/// Lines about one that is starting, and what holds it up until somebody acts.
async fn starting_lines(call: ToolCall<'_>, info: &ExecutionInfo) -> Vec<String> {
    let mut lines = started_lines(info);
    let (id, cwd) = (info.id.short(), Some(info.spec.cwd.as_path()));
    let why = call.engine.diagnose_service(call.caller, &id, cwd).await;
    if let Ok(why) = why
        && (why.question.is_some() || info.state.paused)
    {
        lines.push(format!("Why: {}", why.cause));
        lines.extend(why.hints.iter().map(|hint| format!("hint: {hint}")));
    }
    lines
}

/// Lines about one that is ready, and about others that listen on its port.
async fn ready_lines(call: ToolCall<'_>, info: &ExecutionInfo) -> Vec<String> {
    let mut lines = started_lines(info);
    let cwd = Some(info.spec.cwd.as_path());
    if let Ok(why) = call
        .engine
        .diagnose_service(call.caller, &info.id.short(), cwd)
        .await
    {
        lines.extend(why.shared_ports.iter().map(|it| format!("Warning: {it}")));
    }
    lines
}

/// Why it is not ready, and advice.
async fn not_ready_lines(call: ToolCall<'_>, info: &ExecutionInfo, reason: &str) -> Vec<String> {
    let id = info.id.short();
    let summary = service_report(&id, info);
    let mut lines = vec![service::render_not_ready(
        reason,
        summary.evidence.is_some(),
    )];
    if !info.state.is_finished() {
        lines.push(service::render_still_running(&summary));
        lines.extend(service::render_details(&summary));
    }
    let why = call
        .engine
        .diagnose_service(call.caller, &id, Some(info.spec.cwd.as_path()));
    if let Ok(why) = why.await {
        let waits_for = summary.waits_for.as_deref().unwrap_or("\n");
        let is_redundant = reason.contains(&why.cause) || why.cause.contains(waits_for);
        if !why.cause.is_empty() && !is_redundant {
            lines.push(format!("Why: {}", why.cause));
        }
        lines.extend(why.hints.iter().map(|hint| format!("hint: {hint}")));
    }
    lines
}

/// The end of its output, under its own heading.
async fn last_output(call: ToolCall<'_>, info: &ExecutionInfo) -> String {
    let query = LineQuery {
        tail: Some(LAST_LINES),
        ..LineQuery::default()
    };
    let budget = ExcerptBudget::new(LAST_CHARS, usize::MAX);
    match read_selected(call, info, query, budget).await {
        Ok(mut printed) => match printed.take_blocks().join("\n") {
            text if text.is_empty() => "\nIt printed nothing.".to_owned(),
            text => format!("\nLast lines:\n{text}"),
        },
        Err(failure) => format!("\nIts output cannot be read: {}", failure.message()),
    }
}

/// The next calls to make, in terms of the available tools.
fn next_calls(call: ToolCall<'_>, info: &ExecutionInfo, standing: &ReadyState) -> Option<String> {
    let (id, name) = (info.id.short(), call_name(info));
    let offered = |tool| call.client_context.tools.offers(tool);
    let is_alive = !info.state.is_finished();
    if offered("service") {
        return Some(match standing {
            ReadyState::Starting => format!(
                "[go on: service status, name \"{name}\", wait_ms 45000; end it: service stop]"
            ),
            ReadyState::Completed => return None,
            ReadyState::Ready | ReadyState::NotReady(_) if is_alive => {
                format!("[look: service logs, name \"{name}\"; end it: service stop]")
            }
            ReadyState::Ready | ReadyState::NotReady(_) => {
                format!("[more: service logs, name \"{name}\"]")
            }
        });
    }
    let [read, stop] = if offered("command_ps_logs") {
        [
            format!("command_ps_logs with pid {id}"),
            format!("command_ps_stop with pid {id}"),
        ]
    } else if offered("poll_process") {
        [
            format!("poll_process with process_id \"{id}\""),
            format!("kill_process with process_id \"{id}\""),
        ]
    } else {
        return None;
    };
    Some(if is_alive {
        format!("[look: {read}; end it: {stop}]")
    } else {
        format!("[more: {read}]")
    })
}
