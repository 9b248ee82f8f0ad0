//! Services as text: the results of starts, waits and failures.

use ostler_model::{
    Phase, ReadyCondition, ServiceKind, ServicePlan, ServicePort, ServiceStage, State,
};

/// Ports of debuggers and hot reloading, which are not the main port.
const DEBUG_PORTS: [std::ops::RangeInclusive<u16>; 4] = [
    9_229..=9_239,
    5_678..=5_678,
    35_729..=35_729,
    24_678..=24_678,
];

/// The data of a service that the texts contain.
#[derive(Debug, Clone)]
pub struct ServiceReport<'a> {
    /// Its short id.
    pub id: &'a str,
    /// Its process now.
    pub process: ServiceProcess,
    /// Its status in a word, for example `ready`.
    pub status: &'a str,
    /// The URL.
    pub url: Option<&'a str>,
    /// The ports it listens on.
    pub ports: Vec<&'a ServicePort>,
    /// The evidence of its readiness.
    pub evidence: Option<&'a str>,
    /// Warnings.
    pub warnings: &'a [String],
    /// What its readiness waits for, as [`waits_for`] returns it.
    pub waits_for: Option<String>,
}

/// The process of a service that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceProcess {
    /// None yet: its first attempt is to come.
    NotStarted,
    /// One runs; its OS pid, where it is known.
    Running(Option<u32>),
    /// None now: that of an attempt ended, and the next attempt is to come.
    BetweenAttempts,
}

impl ServiceProcess {
    /// The process in this phase; `pid` is that of the newest attempt, which may have ended.
    #[must_use]
    pub const fn new(phase: Phase, attempt: u32, pid: Option<u32>) -> Self {
        match (phase, attempt) {
            (Phase::Starting, 0) => Self::NotStarted,
            (Phase::Starting, _) => Self::BetweenAttempts,
            (Phase::Running | Phase::Stopping | Phase::Finished, _) => Self::Running(pid),
        }
    }
}

/// What a service waits for on its way to ready, as a noun phrase; none once it is there and
/// after its end. `observed` is what its readiness check waits for now, where one runs.
#[must_use]
pub fn waits_for(plan: &ServicePlan, state: &State, observed: Option<&str>) -> Option<String> {
    let is_reached = matches!(
        state.stage,
        Some(ServiceStage::Ready | ServiceStage::Running)
    );
    match state.phase {
        Phase::Stopping | Phase::Finished => None,
        Phase::Starting => Some(waits_before_start(plan, state)),
        Phase::Running if is_reached => None,
        // The readiness check knows best; none runs for a moment after the spawn.
        Phase::Running => Some(observed.map_or_else(|| first_signal(plan), str::to_owned)),
    }
}

fn waits_before_start(plan: &ServicePlan, state: &State) -> String {
    let names: Vec<&str> = plan.depends_on.iter().map(|it| it.name.as_str()).collect();
    match (state.attempt, names.is_empty()) {
        (0, false) => names.join(", "),
        (0, true) => "its program to start".to_owned(),
        (_, _) => "its next attempt".to_owned(),
    }
}

fn first_signal(plan: &ServicePlan) -> String {
    match (plan.ready.kind, plan.ready.port) {
        (ServiceKind::Watcher, _) => "its first sign of life".to_owned(),
        (ServiceKind::Socket, _) => "its socket to listen".to_owned(),
        (_, Some(port)) => format!("port {port} to listen"),
        (_, None) => "a port to listen".to_owned(),
    }
}

/// The response to a start: one sentence, then one line per fact.
#[must_use]
pub fn render_started(report: &ServiceReport<'_>) -> String {
    let mut text = format!(
        "Service started with ID: {}. Status: {}. The service is running in the background.",
        report.id, report.status
    );
    for line in render_details(report) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// URL, ports, evidence and warnings, a line each.
#[must_use]
pub fn render_details(report: &ServiceReport<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(report.url.map(|url| format!("URL: {url}")));
    if !report.ports.is_empty() {
        lines.push(format!("Ports: {}", render_ports(&report.ports)));
    }
    lines.extend(report.evidence.map(|it| format!("Evidence: {it}")));
    lines.extend(report.warnings.iter().map(|it| format!("Warning: {it}")));
    lines
}

/// `3000 (node), 9229 (node, debugger)`; the main port first, each number once.
#[must_use]
pub fn render_ports(ports: &[&ServicePort]) -> String {
    let number = |port: &ServicePort| port.address.port();
    let mut distinct: Vec<&ServicePort> = Vec::new();
    let (main, others): (Vec<&ServicePort>, Vec<&ServicePort>) =
        ports.iter().partition(|port| port.main);
    for port in main.into_iter().chain(others) {
        if !distinct.iter().any(|it| number(it) == number(port)) {
            distinct.push(port);
        }
    }
    let texts: Vec<String> = distinct.into_iter().map(render_port).collect();
    texts.join(", ")
}

fn render_port(port: &ServicePort) -> String {
    let number = port.address.port();
    let debugger = !port.main && DEBUG_PORTS.iter().any(|it| it.contains(&number));
    match (port.process.as_str(), debugger) {
        ("", false) => number.to_string(),
        ("", true) => format!("{number} (debugger)"),
        (process, false) => format!("{number} ({process})"),
        (process, true) => format!("{number} ({process}, debugger)"),
    }
}

/// The answer of a start that could not be carried out.
#[must_use]
pub fn render_not_started(error: &str) -> String {
    format!("Failed to start service: {error}")
}

/// The answer of a wait for a service that cannot become ready, was not ready in time, or is not
/// ready any more (`was_ready`).
#[must_use]
pub fn render_not_ready(reason: &str, was_ready: bool) -> String {
    if was_ready {
        format!("Service was ready and is no longer: {reason}")
    } else {
        format!("Service failed to become ready: {reason}")
    }
}

/// Why a wait timed out, by its condition.
#[must_use]
pub fn timeout_reason(condition: &ReadyCondition, waited_ms: u64) -> String {
    match condition {
        ReadyCondition::Log => format!("Service ready pattern not matched within {waited_ms}ms"),
        ReadyCondition::Http { .. } => format!("Health check failed within {waited_ms}ms"),
        ReadyCondition::Auto
        | ReadyCondition::Listening
        | ReadyCondition::Responding
        | ReadyCondition::Tcp { .. }
        | ReadyCondition::Exec { .. }
        | ReadyCondition::Notify
        | ReadyCondition::Quiet { .. } => format!("not ready within {waited_ms}ms"),
    }
}

/// That a service continues although the wait for it has ended.
#[must_use]
pub fn render_still_running(report: &ServiceReport<'_>) -> String {
    let (how, pid) = match report.process {
        ServiceProcess::NotStarted => ("It is not running yet", None),
        ServiceProcess::Running(pid) => ("It is still running", pid),
        ServiceProcess::BetweenAttempts => ("It will be started again", None),
    };
    let pid = pid.map(|pid| format!(", pid {pid}"));
    let waits = report
        .waits_for
        .as_ref()
        .map(|it| format!("; it waits for {it}"));
    format!(
        "{how}: ID {}{}; status {}{}",
        report.id,
        pid.unwrap_or_default(),
        report.status,
        waits.unwrap_or_default()
    )
}

/// How a service ended before or during a wait, as the reason of [`render_not_ready`]; `description`
/// describes its termination where that was no success.
#[must_use]
pub fn end_reason(description: Option<&str>, was_ready: bool) -> String {
    let end = description.unwrap_or("it ended with exit code 0");
    if was_ready {
        end.to_owned()
    } else {
        format!("{end} before it was ready")
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
