//! Explains why a service is in its state: a pure function of the facts about it.

use std::sync::LazyLock;

use ostler_model::duration;
use ostler_model::limits_hit::describe_limits_hit;
use ostler_model::{
    Dependency, DependencyCondition, Lifetime, PortHolder, ReadyCondition, ReadyRule,
    RestartPolicy, ServiceStage, State, StopReason, TerminationCause, Timestamp,
};
use regex::Regex;

use super::{Diagnosis, ServiceInfo, ServiceQuestion, format};
use crate::error::describe_port_holder;
use crate::readiness::{failure_line, is_port_conflict};

/// The context of a port number in lines about a conflict, in the wording of many languages, the
/// most certain first: a line has other numbers, of its time and of a source position.
static PORT: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        r"(?i)\bport[\s:='\x22]{1,4}(\d{1,5})\b",
        r"(?i)(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\]|\*):(\d{2,5})\b",
        r"(?i)(?:EADDRINUSE|in use|\bbind\b|\blisten\b|connect to|address).{0,80}?[:,]\s?(\d{2,5})\b",
    ]
    .map(|it| Regex::new(it).expect("a constant"))
});
/// Error numbers are no ports.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:errno|os error|error|code)[\s:=\]]{0,3}\d{1,5}\b|\(\d{2}: ")
        .expect("a constant")
});

/// The most lines shown.
const SHOWN_LINES: usize = 5;

/// The input of a diagnosis.
#[derive(Debug)]
pub(crate) struct DiagnosisInput<'a> {
    pub(crate) info: &'a ServiceInfo,
    /// Its dependencies, with the state of each.
    pub(crate) needs: Vec<(Dependency, Option<ServiceInfo>)>,
    /// Other processes that hold its ports, with the caller's service that each one belongs to.
    pub(crate) holders: Vec<(PortHolder, Option<String>)>,
    /// Its last lines, oldest first.
    pub(crate) lines: Vec<String>,
    /// Its open question.
    pub(crate) question: Option<ServiceQuestion>,
    pub(crate) now: Timestamp,
}

/// Ports that may be in conflict: those its output reports as in use; where it names none, the one
/// it was assigned, requested or usually takes. None where the output reports no conflict: a holder
/// of its port is not the cause then.
pub(crate) fn contested_ports(info: &ServiceInfo, lines: &[String]) -> Vec<u16> {
    let state = info.execution.as_ref().map(|it| &it.state);
    let detail = state.and_then(|it| it.health.clone());
    let warned = state.map(|it| it.warnings.clone()).unwrap_or_default();
    let all = || lines.iter().chain(&detail).chain(&warned);
    let conflict_lines: Vec<&String> = all().filter(|line| is_port_conflict(line)).collect();
    let rule = &info.plan.ready;
    let listens_on_main = state.is_some_and(|it| it.ports.iter().any(|it| it.main));
    let moved = listens_on_main
        && rule
            .port
            .is_some_and(|requested| !listens_on(state, requested));
    if conflict_lines.is_empty() && !moved {
        return Vec::new();
    }
    let mut ports: Vec<u16> = conflict_lines
        .iter()
        .filter_map(|line| port_in(line))
        .collect();
    if ports.is_empty() {
        // `port: 3000` is on a line of its own where Node.js prints the whole error.
        let near = lines
            .iter()
            .filter(|line| line.trim_start().starts_with("port:"));
        ports.extend(near.filter_map(|line| port_in(line)));
    }
    if ports.is_empty() {
        ports.extend(info.plan.leased_port.or(rule.port).or(rule.default_port));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn listens_on(state: Option<&State>, port: u16) -> bool {
    let ports = state.map(|it| &it.ports);
    ports.is_some_and(|it| it.iter().any(|it| it.address.port() == port))
}

/// The port that a line about a conflict names.
fn port_in(line: &str) -> Option<u16> {
    let plain = NUMBER.replace_all(line, " ");
    let found = PORT.iter().find_map(|it| it.captures(&plain))?;
    let number = found.get(1)?.as_str();
    number.parse().ok().filter(|port: &u16| *port > 0)
}

pub(crate) fn diagnose(input: &DiagnosisInput<'_>) -> Diagnosis {
    let status = input.info.status();
    let mut diagnosis = Diagnosis {
        name: input.info.name.clone(),
        status: status.to_owned(),
        cause: String::new(),
        evidence: Vec::new(),
        hints: Vec::new(),
        shared_ports: Vec::new(),
        question: input.question.clone(),
    };
    match &input.info.execution {
        Some(info) if input.info.pending.is_none() || input.info.is_living() => {
            diagnosis.cause = describe_cause(input, &info.state);
            let limits = limits_reached(input, &info.state);
            add_evidence(&mut diagnosis, &info.state, limits);
            add_hints(&mut diagnosis, input, &info.state);
        }
        Some(_) | None => explain_not_started(&mut diagnosis, input),
    }
    add_conflicts(&mut diagnosis, input);
    add_dependencies(&mut diagnosis, input);
    diagnosis.evidence.extend(input.info.notes.iter().cloned());
    if shows_lines(input, status) {
        let lines = input
            .lines
            .iter()
            .skip(input.lines.len().saturating_sub(SHOWN_LINES));
        diagnosis
            .evidence
            .extend(lines.map(|line| format!("printed: {line}")));
    }
    diagnosis
}

/// Whether its output may tell more about its status.
fn shows_lines(input: &DiagnosisInput<'_>, status: &str) -> bool {
    match status {
        "ready" | "running" => false,
        "stopped" => input.info.execution.as_ref().is_some_and(|info| {
            info.state.stopping.is_none() && ended_too_early(input.info, &info.state)
        }),
        _ => true,
    }
}

/// Whether it ended before the condition of readiness that its definition names was met.
fn ended_too_early(info: &ServiceInfo, state: &State) -> bool {
    let is_explicit = info.plan.ready.when != ReadyCondition::Auto;
    state.ending.is_some() && state.ready_evidence.is_none() && is_explicit
}

fn explain_not_started(diagnosis: &mut Diagnosis, input: &DiagnosisInput<'_>) {
    match (&input.info.pending, &input.info.defined_in) {
        (Some(pending), _) => diagnosis.cause = format!("it waits for {pending}"),
        (None, Some(at)) => {
            let at = if at == "api" { "through the API" } else { at };
            diagnosis.cause = format!("it is defined ({at}) and was not started");
            diagnosis
                .hints
                .push("start it with ensure, or with up".to_owned());
        }
        (None, None) => diagnosis.cause = "it was not started".to_owned(),
    }
}

fn describe_cause(input: &DiagnosisInput<'_>, state: &State) -> String {
    if let Some(ending) = &state.ending {
        return describe_end(input, state, &ending.describe());
    }
    if let Some(until) = state.backoff_until {
        let wait = duration::rounded(duration::between(input.now, until));
        let end = state.last_end.as_deref().unwrap_or("its end");
        return format!(
            "attempt {} ended ({end}); the next begins in {wait}",
            state.attempt
        );
    }
    if let Some(order) = &state.stopping {
        return format!("{}; its processes end", stopped_by(order));
    }
    if state.attempt == 0 {
        return "its program does not run yet".to_owned();
    }
    if state.paused {
        return format!(
            "it is paused: it was {} before, and does nothing until it is resumed",
            input.info.status()
        );
    }
    if state.healthy == Some(false) {
        let detail = state.health.as_deref().unwrap_or("no reason is known");
        let asks = input.question.as_ref().map(describe_question);
        let asks = asks.map_or_else(String::new, |it| format!("; {it}"));
        return format!("it lives and is not well: {detail}{asks}");
    }
    match &input.question {
        Some(question) if !is_up(state) => describe_question(question),
        Some(_) | None => describe_stage(input, state),
    }
}

/// Whether it is ready, or running with nothing to look at.
const fn is_up(state: &State) -> bool {
    matches!(
        state.stage,
        Some(ServiceStage::Ready | ServiceStage::Running)
    )
}

fn describe_question(question: &ServiceQuestion) -> String {
    match question.text.trim() {
        "" => "it waits for input".to_owned(),
        text => format!("it asks: {text}"),
    }
}

/// How far one is that lives and is well.
fn describe_stage(input: &DiagnosisInput<'_>, state: &State) -> String {
    let since = state
        .signs
        .last()
        .map(|sign| sign.at)
        .or_else(|| state.newest_start());
    let time = since.map_or_else(String::new, |since| {
        format!(
            " for {}",
            duration::rounded(duration::between(since, input.now))
        )
    });
    let info = input.info.execution.as_ref();
    let waits = info.and_then(|info| info.waiting_for.as_deref());
    let waits = waits.map_or_else(String::new, |it| format!(" and waits for {it}"));
    let evidence = state.ready_evidence.as_deref().unwrap_or("it was seen so");
    match state.stage {
        None => format!("it lives{time}{waits}"),
        Some(ServiceStage::Listening) => {
            format!("a port of it listens{time}; it is not ready yet{waits}")
        }
        Some(ServiceStage::Responding) => format!("it answers{time}; it is not ready yet{waits}"),
        Some(ServiceStage::Running) => {
            format!("it lives, and there is nothing to look at: {evidence}")
        }
        Some(ServiceStage::Ready) => format!("it is ready{time}: {evidence}"),
    }
}

fn describe_end(input: &DiagnosisInput<'_>, state: &State, how: &str) -> String {
    if let Some(order) = &state.stopping {
        return format!("{}: {how}", stopped_by(order));
    }
    let cause = state.ending.as_ref().map(|ending| &ending.cause);
    if let Some(TerminationCause::SpawnFailed { .. }) = cause {
        return format!("attempt {}: {how}", state.attempt);
    }
    let last = describe_output(&input.info.plan.ready, &input.lines);
    match input.info.status() {
        "crash_looping" => format!(
            "it ended {} times, and its restart policy allows no more; the last time: {how}{last}",
            state.attempt
        ),
        "stopped" if ended_too_early(input.info, state) => {
            format!("it ended by itself before it was ready: {how}{last}")
        }
        "stopped" if input.lines.iter().any(|line| is_port_conflict(line)) => {
            format!("it ended by itself: {how}{last}")
        }
        "stopped" => format!("it ended by itself: {how}"),
        _ => {
            let before = if state.ready_evidence.is_none() {
                "it ended before it was ready"
            } else {
                "it was ready and ended"
            };
            format!("{before}: {how}{last}")
        }
    }
}

/// Its output about its end: the line that reports a failure, else the last one.
pub(crate) fn describe_output(rule: &ReadyRule, lines: &[String]) -> String {
    match (failure_line(rule, lines), lines.last()) {
        (Some(line), _) => format!("; it said: {line}"),
        (None, Some(line)) => format!("; its last line: {line}"),
        (None, None) => String::new(),
    }
}

fn stopped_by(order: &StopReason) -> String {
    match order {
        StopReason::Requested {
            by,
            reason: Some(reason),
            ..
        } => format!("{by} stopped it ({reason})"),
        StopReason::Requested { by, .. } => format!("{by} stopped it"),
        StopReason::TimedOut { .. } => "its time ran out".to_owned(),
        StopReason::SessionEnded => "its session ended".to_owned(),
        StopReason::Shutdown => "the engine was shut down".to_owned(),
        StopReason::Cancelled => "the request that started it was given up".to_owned(),
        StopReason::LimitHit { .. } => "it passed a limit".to_owned(),
    }
}

/// The limits that it reached, as its execution tells them.
fn limits_reached(input: &DiagnosisInput<'_>, state: &State) -> Vec<String> {
    let info = input.info.execution.as_ref();
    info.map_or_else(Vec::new, |info| {
        let limits = &info.spec.policy.limits;
        describe_limits_hit(&state.limits_hit, limits, state.ending.as_ref())
    })
}

fn add_evidence(diagnosis: &mut Diagnosis, state: &State, limits: Vec<String>) {
    if let Some(at) = state.attempt_started_at {
        let pid = state
            .shown_pid()
            .map_or_else(String::new, |pid| format!(", pid {pid}"));
        diagnosis.evidence.push(format!(
            "{} started (attempt {}{pid})",
            format::time(at),
            state.attempt
        ));
    }
    for sign in &state.signs {
        let (at, kind) = (format::time(sign.at), sign.kind.as_str());
        diagnosis
            .evidence
            .push(format!("{at} {kind}: {}", sign.detail));
    }
    diagnosis.evidence.extend(state.warnings.iter().cloned());
    diagnosis.evidence.extend(state.degradations().cloned());
    diagnosis.evidence.extend(limits);
    if let (Some(end), true, None) = (&state.last_end, state.attempt > 1, state.ended_at) {
        let before = state.attempt - 1;
        diagnosis
            .evidence
            .push(format!("attempt {before} ended: {end}"));
    }
    if let Some(at) = state.ended_at {
        let end = state.last_end.as_deref().unwrap_or("ended");
        diagnosis
            .evidence
            .push(format!("{} {end}", format::time(at)));
    }
}

fn add_hints(diagnosis: &mut Diagnosis, input: &DiagnosisInput<'_>, state: &State) {
    let id = input.info.execution.as_ref().map(|it| it.id.short());
    let id = id.unwrap_or_default();
    if state.paused {
        diagnosis
            .hints
            .push(format!("resume it: `ostler resume {id}`"));
    }
    match &input.question {
        Some(question) => {
            if is_up(state) && state.healthy != Some(false) {
                diagnosis.evidence.push(describe_question(question));
            }
            diagnosis.hints.push(answer_hint(question, &id));
        }
        None if state.paused => {}
        None => add_status_hint(diagnosis, input, state),
    }
}

/// How its question is answered; `id` is that of its execution.
fn answer_hint(question: &ServiceQuestion, id: &str) -> String {
    let interaction = &question.interaction;
    if question.secret {
        return format!(
            "a person has to type the secret: `ostler attach {id}` (interaction {interaction})"
        );
    }
    format!("answer interaction {interaction}: `ostler interactions answer {interaction} TEXT`")
}

/// What may help in its status.
fn add_status_hint(diagnosis: &mut Diagnosis, input: &DiagnosisInput<'_>, state: &State) {
    let restart = input
        .info
        .execution
        .as_ref()
        .map(|info| &info.spec.lifetime);
    let restarts = !matches!(
        restart,
        Some(Lifetime::Service {
            restart: RestartPolicy::Never,
            ..
        })
    );
    let hint = match diagnosis.status.as_str() {
        "starting" | "listening" | "responding" if state.backoff_until.is_none() => {
            "a slow start is not a failed one: it runs on; look at its log, or say with \
             ready_when or ready_pattern how to see that it is ready"
        }
        "running" => "to know when it is ready, say how to see it: ready_when or ready_pattern",
        "degraded" => {
            "restart it, or ensure it, which replaces what is not well; a watcher may recover \
             once its source is fixed"
        }
        "crash_looping" | "failed" if !limits_reached(input, state).is_empty() => {
            "it reached a limit: let it use less, or start it with a higher one"
        }
        "crash_looping" => "fix the cause, then restart it; its log has every attempt",
        "failed" if state.ready_evidence.is_some() && !restarts => {
            "look at its log and start it again; restart 'on-failure' does that by itself"
        }
        "failed" => "fix the cause and start it again",
        _ => return,
    };
    diagnosis.hints.push(hint.to_owned());
}

fn add_conflicts(diagnosis: &mut Diagnosis, input: &DiagnosisInput<'_>) {
    for (holder, service) in &input.holders {
        let port = holder.address.port();
        let whose = match service {
            Some(name) => format!("your service '{name}' ({})", describe_port_holder(holder)),
            None => describe_port_holder(holder),
        };
        if input.info.main_port() == Some(port) {
            let note = format!(
                "port {port} is shared with {whose}: connections reach the one or the other"
            );
            if !diagnosis.shared_ports.contains(&note) {
                diagnosis.evidence.push(note.clone());
                diagnosis.shared_ports.push(note);
            }
            continue;
        }
        let note = format!("port {port}, which it wants, is held by {whose}");
        let execution = input.info.execution.as_ref();
        let gave_up =
            execution.is_some_and(|it| it.state.is_finished() && it.state.stopping.is_none());
        let lives_well = ["ready", "running"].contains(&diagnosis.status.as_str());
        if gave_up || !lives_well && diagnosis.status != "stopped" {
            diagnosis.cause = format!("{}; {note}", diagnosis.cause);
            diagnosis.hints.push(match service {
                Some(name) => format!("stop '{name}', or give this one another port"),
                None => {
                    "end whoever holds it, or let a free port be leased: port 'auto'".to_owned()
                }
            });
        } else if diagnosis.status != "stopped" {
            diagnosis.evidence.push(note);
        }
    }
}

fn add_dependencies(diagnosis: &mut Diagnosis, input: &DiagnosisInput<'_>) {
    for (need, known) in &input.needs {
        let required = format::condition_name(need.condition);
        let note = match known {
            None => format!(
                "it needs '{}' to be {required}, which nobody knows",
                need.name
            ),
            Some(info) => format!(
                "it needs '{}' to be {required}, which {}",
                need.name,
                describe_dependency(need, info)
            ),
        };
        if input.info.pending.is_some() && !input.info.is_living() {
            diagnosis.cause = format!("{}; {note}", diagnosis.cause);
        } else {
            diagnosis.evidence.push(note);
        }
    }
}

/// How a dependency stands, as a verb phrase.
fn describe_dependency(need: &Dependency, info: &ServiceInfo) -> String {
    let execution = info.execution.as_ref();
    let ending = execution.and_then(|it| it.state.ending.as_ref());
    if let (DependencyCondition::Completed, Some(ending)) = (need.condition, ending)
        && ending.is_success()
    {
        return format!("completed ({})", ending.describe());
    }
    let living = execution.filter(|_| info.is_living());
    let waits = living.and_then(|it| it.waiting_for.clone());
    let waits = waits.map_or_else(String::new, |it| format!(": it waits for {it}"));
    format!("is {}{waits}", info.status())
}

#[cfg(test)]
mod tests;
