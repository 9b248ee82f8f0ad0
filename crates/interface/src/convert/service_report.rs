//! Converts service data, of the engine or of a body, into the input of [`ostler_render::service`],
//! and builds the sentences that the REST API and its clients share.

use ostler_api::{EnsureResponse, ExecutionBody, ServiceStateBody, WaitEndKind};
use ostler_engine::ExecutionInfo;
use ostler_render::service::{self as words, ServiceProcess, ServiceReport};

/// The report of an execution; `id` is its short id.
pub fn service_report<'a>(id: &'a str, info: &'a ExecutionInfo) -> ServiceReport<'a> {
    let state = &info.state;
    ServiceReport {
        id,
        process: ServiceProcess::new(state.phase, state.attempt, state.shown_pid()),
        status: info.status().service,
        url: state.url.as_deref(),
        ports: state.ports.iter().collect(),
        evidence: state.ready_evidence.as_deref(),
        warnings: &state.warnings,
        waits_for: waits_for(info),
    }
}

/// The condition that a service waits for before it is ready, as a noun phrase; none once it is
/// ready, after its end, and for other executions.
pub(super) fn waits_for(info: &ExecutionInfo) -> Option<String> {
    let plan = info.spec.lifetime.plan()?;
    words::waits_for(plan, &info.state, info.waiting_for.as_deref())
}

/// The report of the execution `info`, of which `state` is part.
fn report_of_body<'a>(state: &'a ServiceStateBody, info: &'a ExecutionBody) -> ServiceReport<'a> {
    ServiceReport {
        id: &info.id,
        process: ServiceProcess::new(info.phase, info.attempt, info.os_pid),
        status: &state.status,
        url: state.url.as_deref(),
        ports: state.ports.iter().map(|port| &port.bound).collect(),
        evidence: state.evidence.as_deref(),
        warnings: &state.warnings,
        waits_for: state.waits_for.clone(),
    }
}

/// An [`EnsureResponse`] as text; `waited_ms` is the timeout of the wait for it.
#[must_use]
pub fn ensure_message(response: &EnsureResponse, waited_ms: u64) -> String {
    let info = response.service.execution.as_ref();
    let Some((info, state)) = info.and_then(|info| Some((info, info.service.as_deref()?))) else {
        return response.note.clone();
    };
    if response.has_completed() {
        return format!("{} completed: exit code 0", response.service.name);
    }
    let report = report_of_body(state, info);
    let was_ready = report.evidence.is_some();
    let outcome = response.waited.as_ref();
    let timed_out = || words::timeout_reason(&state.ready_when.clone().into(), waited_ms);
    let render_failure = |failure: &str| {
        let mut lines = vec![words::render_not_ready(failure, was_ready)];
        lines.extend(
            response
                .reason
                .iter()
                .map(|why| format!("Why: {}", why.because)),
        );
        lines.extend((!info.is_finished()).then(|| words::render_still_running(&report)));
        lines.join("\n")
    };
    match outcome.map(|waited| (waited.why, waited.detail.as_deref())) {
        Some((WaitEndKind::TimedOut, _)) => render_failure(&timed_out()),
        Some((WaitEndKind::NotReady, detail)) => render_failure(detail.unwrap_or("it ended")),
        Some((WaitEndKind::Exit, _)) => {
            render_failure(&words::end_reason(info.error_message.as_deref(), was_ready))
        }
        Some((
            WaitEndKind::Pattern
            | WaitEndKind::Ready
            | WaitEndKind::Output
            | WaitEndKind::Idle
            | WaitEndKind::Prompt
            | WaitEndKind::Nothing,
            _,
        ))
        | None => {
            // The caller may have expected a new one.
            let has_note = response.reused || response.note.starts_with("replaced");
            let note = has_note.then(|| format!("\n{}", response.note));
            let shared = response.shared.iter().map(|it| format!("\nWarning: {it}"));
            words::render_started(&report) + &shared.collect::<String>() + &note.unwrap_or_default()
        }
    }
}
