//! Why a service is where it is: pure, from what is known of it.

use std::sync::LazyLock;

use ostler_model::{
    Dependency, Holder, Lifetime, ReadyRule, Restart, Stage, State, StopOrder, Timestamp,
};
use regex::Regex;

use super::error::describe;
use super::{ServiceInfo, Why, words};
use crate::readiness::{failure_line, is_conflict};

/// What is said before and behind the port of a conflict, in the words of many languages, the
/// surest first: a line has other numbers, of its time and of a place in a source.
static PORT: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        r"(?i)\bport[\s:='\x22]{1,4}(\d{1,5})\b",
        r"(?i)(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\]|\*):(\d{2,5})\b",
        r"(?i)(?:EADDRINUSE|in use|\bbind\b|\blisten\b|connect to|address).{0,80}?[:,]\s?(\d{2,5})\b",
    ]
    .map(|it| Regex::new(it).expect("a constant"))
});
/// Numbers of the error itself are no ports.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:errno|os error|error|code)[\s:=\]]{0,3}\d{1,5}\b|\(\d{2}: ")
        .expect("a constant")
});

/// Lines that are shown.
const SHOWN: usize = 5;

/// Everything that is known.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// The service.
    pub(crate) info: &'a ServiceInfo,
    /// What it depends on, with what is known of each.
    pub(crate) needs: Vec<(Dependency, Option<ServiceInfo>)>,
    /// Others that hold ports it wants, with the caller's service each is.
    pub(crate) holders: Vec<(Holder, Option<String>)>,
    /// Its last lines, oldest first.
    pub(crate) lines: Vec<String>,
    /// The time.
    pub(crate) now: Timestamp,
}

/// Ports about which somebody may be in its way: those it says are in use; where it names none,
/// the one it was given, asked for or usually takes. None where nothing was said of a conflict:
/// whoever holds its port then is not to blame.
pub(crate) fn ports_in_question(info: &ServiceInfo, lines: &[String]) -> Vec<u16> {
    let state = info.execution.as_ref().map(|it| &it.state);
    let detail = state.and_then(|it| it.health.clone());
    let warned = state.map(|it| it.warnings.clone()).unwrap_or_default();
    let all = || lines.iter().chain(&detail).chain(&warned);
    let said: Vec<&String> = all().filter(|line| is_conflict(line)).collect();
    let rule = &info.plan.ready;
    let own = state.is_some_and(|it| it.ports.iter().any(|it| it.main));
    let moved = own && rule.port.is_some_and(|asked| !listens_on(state, asked));
    if said.is_empty() && !moved {
        return Vec::new();
    }
    let mut ports: Vec<u16> = said.iter().filter_map(|line| port_in(line)).collect();
    if ports.is_empty() {
        // `port: 3000` stands in a line of its own where Node.js prints the whole error.
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

/// The port a line about a conflict names.
fn port_in(line: &str) -> Option<u16> {
    let plain = NUMBER.replace_all(line, " ");
    let found = PORT.iter().find_map(|it| it.captures(&plain))?;
    let number = found.get(1)?.as_str();
    number.parse().ok().filter(|port: &u16| *port > 0)
}

/// Explains.
pub(crate) fn explain(case: &Case<'_>) -> Why {
    let status = case.info.status();
    let mut why = Why {
        name: case.info.name.clone(),
        status: status.to_owned(),
        because: String::new(),
        evidence: Vec::new(),
        hints: Vec::new(),
        shared: Vec::new(),
    };
    match &case.info.execution {
        Some(info) if case.info.pending.is_none() || case.info.is_living() => {
            why.because = because(case, &info.state);
            evidence(&mut why, &info.state);
            hints(&mut why, case, &info.state);
        }
        Some(_) | None => not_started(&mut why, case),
    }
    conflicts(&mut why, case);
    needs(&mut why, case);
    why.evidence.extend(case.info.notes.iter().cloned());
    let tells = ["ready", "running", "stopped"];
    if !tells.contains(&status) {
        let lines = case
            .lines
            .iter()
            .skip(case.lines.len().saturating_sub(SHOWN));
        why.evidence
            .extend(lines.map(|line| format!("printed: {line}")));
    }
    why
}

fn not_started(why: &mut Why, case: &Case<'_>) {
    match (&case.info.pending, &case.info.defined_in) {
        (Some(pending), _) => why.because = format!("it waits for {pending}"),
        (None, Some(at)) => {
            let at = if at == "api" { "through the API" } else { at };
            why.because = format!("it is defined ({at}) and was not started");
            why.hints
                .push("start it with ensure, or with up".to_owned());
        }
        (None, None) => why.because = "it was not started".to_owned(),
    }
}

fn because(case: &Case<'_>, state: &State) -> String {
    if let Some(ending) = &state.ending {
        return ended(case, state, &ending.describe());
    }
    if let Some(until) = state.backoff_until {
        let wait = words::span(words::between(case.now, until));
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
    let since = state.signs.last().map(|sign| sign.at).or(state.started_at);
    let time = since.map_or_else(String::new, |since| {
        format!(" for {}", words::span(words::between(since, case.now)))
    });
    if state.healthy == Some(false) {
        let detail = state.health.as_deref().unwrap_or("no reason is known");
        return format!("it lives and is not well: {detail}");
    }
    let info = case.info.execution.as_ref();
    let waits = info.and_then(|info| info.waits_for.as_deref());
    let waits = waits.map_or_else(String::new, |it| format!(" and waits for {it}"));
    let seen = state.ready_evidence.as_deref().unwrap_or("it was seen so");
    match state.stage {
        None => format!("it lives{time}{waits}"),
        Some(Stage::Listening) => format!("a port of it listens{time}; it is not ready yet{waits}"),
        Some(Stage::Responding) => format!("it answers{time}; it is not ready yet{waits}"),
        Some(Stage::Running) => format!("it lives, and there is nothing to look at: {seen}"),
        Some(Stage::Ready) => format!("it is ready{time}: {seen}"),
    }
}

fn ended(case: &Case<'_>, state: &State, how: &str) -> String {
    if let Some(order) = &state.stopping {
        return format!("{}: {how}", stopped_by(order));
    }
    let last = said(&case.info.plan.ready, &case.lines);
    match case.info.status() {
        "crash_looping" => format!(
            "it ended {} times, and its restart policy allows no more; the last time: {how}{last}",
            state.attempt
        ),
        "stopped" if case.lines.iter().any(|line| is_conflict(line)) => {
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

/// What it said of its end: the line that tells of a failure, else its last one.
pub(crate) fn said(rule: &ReadyRule, lines: &[String]) -> String {
    match (failure_line(rule, lines), lines.last()) {
        (Some(line), _) => format!("; it said: {line}"),
        (None, Some(line)) => format!("; its last line: {line}"),
        (None, None) => String::new(),
    }
}

fn stopped_by(order: &StopOrder) -> String {
    match order {
        StopOrder::Requested {
            by,
            reason: Some(reason),
            ..
        } => format!("{by} stopped it ({reason})"),
        StopOrder::Requested { by, .. } => format!("{by} stopped it"),
        StopOrder::TimedOut { .. } => "its time ran out".to_owned(),
        StopOrder::SessionEnded => "its session ended".to_owned(),
        StopOrder::Shutdown => "the engine was shut down".to_owned(),
        StopOrder::Cancelled => "the request that started it was given up".to_owned(),
        StopOrder::LimitHit { .. } => "it passed a limit".to_owned(),
    }
}

fn evidence(why: &mut Why, state: &State) {
    if let Some(at) = state.started_at {
        let pid = state
            .pid
            .map_or_else(String::new, |pid| format!(", pid {pid}"));
        why.evidence.push(format!(
            "{} started (attempt {}{pid})",
            moment(at),
            state.attempt
        ));
    }
    for sign in &state.signs {
        let (at, kind) = (moment(sign.at), sign.kind.as_str());
        why.evidence.push(format!("{at} {kind}: {}", sign.detail));
    }
    why.evidence.extend(state.warnings.iter().cloned());
    why.evidence.extend(state.degraded.iter().cloned());
    if let (Some(end), true, None) = (&state.last_end, state.attempt > 1, state.ended_at) {
        let before = state.attempt - 1;
        why.evidence.push(format!("attempt {before} ended: {end}"));
    }
    if let Some(at) = state.ended_at {
        let end = state.last_end.as_deref().unwrap_or("ended");
        why.evidence.push(format!("{} {end}", moment(at)));
    }
}

fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn hints(why: &mut Why, case: &Case<'_>, state: &State) {
    let restart = case.info.execution.as_ref().map(|info| &info.spec.lifetime);
    let restarts = !matches!(
        restart,
        Some(Lifetime::Service {
            restart: Restart::Never,
            ..
        })
    );
    let hint = match why.status.as_str() {
        "starting" | "listening" | "responding" if state.backoff_until.is_none() => {
            "a slow start is not a failed one: it runs on; look at its log, or say with \
             ready_when or ready_pattern how to see that it is ready"
        }
        "running" => "to know when it is ready, say how to see it: ready_when or ready_pattern",
        "degraded" => {
            "restart it, or ensure it, which replaces what is not well; a watcher may recover \
             once its source is fixed"
        }
        "crash_looping" => "fix the cause, then restart it; its log has every attempt",
        "failed" if state.ready_evidence.is_some() && !restarts => {
            "look at its log and start it again; restart 'on-failure' does that by itself"
        }
        "failed" => "fix the cause and start it again",
        _ => return,
    };
    why.hints.push(hint.to_owned());
}

fn conflicts(why: &mut Why, case: &Case<'_>) {
    for (holder, service) in &case.holders {
        let port = holder.address.port();
        let whose = match service {
            Some(name) => format!("your service '{name}' ({})", describe(holder)),
            None => describe(holder),
        };
        if case.info.main_port() == Some(port) {
            let told = format!(
                "port {port} is shared with {whose}: connections reach the one or the other"
            );
            if !why.shared.contains(&told) {
                why.evidence.push(told.clone());
                why.shared.push(told);
            }
            continue;
        }
        let told = format!("port {port}, which it wants, is held by {whose}");
        let execution = case.info.execution.as_ref();
        let gave_up =
            execution.is_some_and(|it| it.state.is_finished() && it.state.stopping.is_none());
        let lives_well = ["ready", "running"].contains(&why.status.as_str());
        if gave_up || !lives_well && why.status != "stopped" {
            why.because = format!("{}; {told}", why.because);
            why.hints.push(match service {
                Some(name) => format!("stop '{name}', or give this one another port"),
                None => {
                    "end whoever holds it, or let a free port be leased: port 'auto'".to_owned()
                }
            });
        } else if why.status != "stopped" {
            why.evidence.push(told);
        }
    }
}

fn needs(why: &mut Why, case: &Case<'_>) {
    for (need, known) in &case.needs {
        let far = words::condition(need.condition);
        let told = match known {
            None => format!("it needs '{}' to be {far}, which nobody knows", need.name),
            Some(info) => {
                let living = info.execution.as_ref().filter(|_| info.is_living());
                let waits = living.and_then(|it| it.waits_for.clone());
                let waits = waits.map_or_else(String::new, |it| format!(": it waits for {it}"));
                format!(
                    "it needs '{}' to be {far}, which is {}{waits}",
                    need.name,
                    info.status()
                )
            }
        };
        if case.info.pending.is_some() && !case.info.is_living() {
            why.because = format!("{}; {told}", why.because);
        } else {
            why.evidence.push(told);
        }
    }
}

#[cfg(test)]
mod tests;
