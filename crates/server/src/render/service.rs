//! Services in document 004's words: what a start, a wait and a failure answer. Pure.

use ostler_engine::Info;
use ostler_model::{Phase, Port, ReadyWhen, ServiceKind, ServicePlan, Stage, State};

/// Ports on which debuggers and hot reloading listen, not what people mean.
const DEBUG_PORTS: [std::ops::RangeInclusive<u16>; 4] = [
    9_229..=9_239,
    5_678..=5_678,
    35_729..=35_729,
    24_678..=24_678,
];

/// What is told of a service.
#[derive(Debug, Clone)]
pub struct Told<'a> {
    /// Its short id.
    pub id: &'a str,
    /// The OS pid of its newest attempt.
    pub pid: Option<u32>,
    /// Document 004's word for where it stands.
    pub status: &'a str,
    /// Where it is reached.
    pub url: Option<&'a str>,
    /// What it listens on.
    pub ports: Vec<&'a Port>,
    /// What showed it ready.
    pub evidence: Option<&'a str>,
    /// What deserves a warning.
    pub warnings: &'a [String],
    /// What it waits for on its way to ready, as [`waits_for`] says.
    pub waits_for: Option<String>,
}

impl<'a> Told<'a> {
    /// What is told of an execution; `id` is its short id.
    #[must_use]
    pub fn of(id: &'a str, info: &'a Info) -> Self {
        let state = &info.state;
        Self {
            id,
            pid: state.pid,
            status: info.status().service,
            url: state.url.as_deref(),
            ports: state.ports.iter().collect(),
            evidence: state.ready_evidence.as_deref(),
            warnings: &state.warnings,
            waits_for: waits_for(info),
        }
    }
}

/// What a service waits for on its way to ready, as a noun phrase; none once it is there and
/// after its end.
#[must_use]
pub fn waits_for(info: &Info) -> Option<String> {
    let (plan, state) = (info.spec.lifetime.plan()?, &info.state);
    let there = matches!(state.stage, Some(Stage::Ready | Stage::Running));
    match state.phase {
        Phase::Stopping | Phase::Finished => None,
        Phase::Starting => Some(before_birth(plan, state)),
        Phase::Running if there => None,
        // Who looks at it knows best; nobody does for a moment after its birth.
        Phase::Running => Some(info.waits_for.clone().unwrap_or_else(|| first(plan))),
    }
}

fn before_birth(plan: &ServicePlan, state: &State) -> String {
    let names: Vec<&str> = plan.depends_on.iter().map(|it| it.name.as_str()).collect();
    match (state.attempt, names.is_empty()) {
        (0, false) => names.join(", "),
        (0, true) => "its program to start".to_owned(),
        (_, _) => "its next attempt".to_owned(),
    }
}

fn first(plan: &ServicePlan) -> String {
    match (plan.ready.kind, plan.ready.port) {
        (ServiceKind::Watcher, _) => "its first sign of life".to_owned(),
        (ServiceKind::Socket, _) => "its socket to listen".to_owned(),
        (_, Some(port)) => format!("port {port} to listen"),
        (_, None) => "a port to listen".to_owned(),
    }
}

/// What a start answers (E5): the document's sentence, then what is known, a line each.
#[must_use]
pub fn started(told: &Told<'_>) -> String {
    let mut text = format!(
        "Service started with ID: {}. Status: {}. The service is running in the background.",
        told.id, told.status
    );
    for line in details(told) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// URL, ports, evidence and warnings, a line each.
#[must_use]
pub fn details(told: &Told<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(told.url.map(|url| format!("URL: {url}")));
    if !told.ports.is_empty() {
        lines.push(format!("Ports: {}", ports(&told.ports)));
    }
    lines.extend(told.evidence.map(|it| format!("Evidence: {it}")));
    lines.extend(told.warnings.iter().map(|it| format!("Warning: {it}")));
    lines
}

/// `3000 (node), 9229 (node, debugger)`; the main one first, each number once.
#[must_use]
pub fn ports(ports: &[&Port]) -> String {
    let number = |port: &Port| port.address.port();
    let mut shown: Vec<&Port> = Vec::new();
    let (main, others): (Vec<&Port>, Vec<&Port>) = ports.iter().partition(|port| port.main);
    for port in main.into_iter().chain(others) {
        if !shown.iter().any(|it| number(it) == number(port)) {
            shown.push(port);
        }
    }
    let told: Vec<String> = shown.into_iter().map(port).collect();
    told.join(", ")
}

fn port(port: &Port) -> String {
    let number = port.address.port();
    let debugger = !port.main && DEBUG_PORTS.iter().any(|it| it.contains(&number));
    match (port.process.as_str(), debugger) {
        ("", false) => number.to_string(),
        ("", true) => format!("{number} (debugger)"),
        (process, false) => format!("{number} ({process})"),
        (process, true) => format!("{number} ({process}, debugger)"),
    }
}

/// What a start answers that could not be carried out.
#[must_use]
pub fn not_started(error: &str) -> String {
    format!("Failed to start service: {error}")
}

/// What a wait answers for a service that will not become ready as it is, or that was not
/// ready in time.
#[must_use]
pub fn not_ready(reason: &str) -> String {
    format!("Service failed to become ready: {reason}")
}

/// Why a wait that ran out of time did (E4), in the document's words for what was waited for.
#[must_use]
pub fn too_late(when: &ReadyWhen, waited_ms: u64) -> String {
    match when {
        ReadyWhen::Log => format!("Service ready pattern not matched within {waited_ms}ms"),
        ReadyWhen::Http { .. } => format!("Health check failed within {waited_ms}ms"),
        ReadyWhen::Auto
        | ReadyWhen::Listening
        | ReadyWhen::Responding
        | ReadyWhen::Tcp { .. }
        | ReadyWhen::Exec { .. }
        | ReadyWhen::Notify
        | ReadyWhen::Quiet { .. } => format!("not ready within {waited_ms}ms"),
    }
}

/// That a service goes on although nobody waits for it any more.
#[must_use]
pub fn still_running(told: &Told<'_>) -> String {
    let pid = told.pid.map(|pid| format!(", pid {pid}"));
    let waits = told
        .waits_for
        .as_ref()
        .map(|it| format!("; it waits for {it}"));
    format!(
        "It is still running: ID {}{}; status {}{}",
        told.id,
        pid.unwrap_or_default(),
        told.status,
        waits.unwrap_or_default()
    )
}

/// How a service ended that was waited for, as the reason of [`not_ready`]; `how` is the
/// description of its ending where it did not end well.
#[must_use]
pub fn ended(how: Option<&str>) -> String {
    format!(
        "{} before it was ready",
        how.unwrap_or("it ended with exit code 0")
    )
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
