//! `ostler info`.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_model::{LimitBackend, Text};
use ostler_server::render::{clean, service as words, walls};
use ostler_server::wire::{ConfinementBody, InfoBody, ServiceStateBody};

use super::{ids, refused};
use crate::error::{CommandError, Outcome};
use crate::output::{Line, Out, Style, clock, line, print_json, span};
use crate::setup::{Setup, block_on};

/// What `info` takes.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Which executions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// One JSON document for each
    #[arg(long)]
    json: bool,
}

/// Shows everything known of each execution.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: &InfoArgs) -> Outcome {
    let client = setup.client();
    let style = Style::of_stdout(&setup.env);
    block_on(ids::each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let info = ids::info(client, &id).await?;
            if args.json {
                return print_json(&info);
            }
            print(&info, refused::of(client, &info).await, style)
        }
    }))
}

fn print(info: &InfoBody, refused: Option<String>, style: Style) -> Result<(), CommandError> {
    const NAME_CHARS: usize = 12;
    let mut out = Out::new();
    let refused = refused.map(|hosts| ("refused", Line::from(hosts)));
    for (name, value) in rows(info, style).into_iter().chain(refused) {
        let name = style.dim(&format!("{name:NAME_CHARS$}"));
        out.line(line![name, " ", value])?;
    }
    out.flush()
}

fn rows(info: &InfoBody, style: Style) -> Vec<(&'static str, Line)> {
    let zone = TimeZone::system();
    let time = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| clock(at, &zone));
    let mut rows = vec![
        ("id", line![format!("{} ({})", info.id, info.uuid)]),
        ("command", line![&info.command]),
        ("directory", line![&info.directory]),
        ("status", status(info, style)),
        ("created", line![time(info.created_at)]),
        ("started", line![time(info.start_time)]),
        ("ended", line![time(info.end_time)]),
        ("duration", line![span(info.duration)]),
    ];
    let service = info.service.iter().flat_map(|state| service(state));
    let more = optional(info).chain(service).chain(isolation(info));
    rows.extend(more.map(|(name, value)| (name, value.into())));
    rows.push(("output", output(info).into()));
    rows
}

fn status(info: &InfoBody, style: Style) -> Line {
    let status = super::ps::status(info, style);
    if info.paused && !info.is_finished() {
        status.and(", paused")
    } else {
        status
    }
}

fn optional(info: &InfoBody) -> impl Iterator<Item = (&'static str, String)> {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let seconds = info.timeout.map(span);
    let rows = [
        ("description", text(&info.description)),
        ("labels", text(&info.labels.join(", "))),
        ("exit code", info.exit_code.map(|code| code.to_string())),
        ("signal", info.signal.clone()),
        ("ended by", info.error_message.clone()),
        ("stop reason", info.stop_reason.clone()),
        ("pid", info.os_pid.map(|pid| pid.to_string())),
        ("timeout", seconds),
        ("session", info.session.clone()),
        ("encoding", info.encoding.clone()),
        ("degraded", text(&info.degraded.join("; "))),
        (
            "left behind",
            Some(info.leftovers)
                .filter(|&n| n > 0)
                .map(|n| format!("{n} processes, ended")),
        ),
        (
            "survivors",
            text(
                &info
                    .survivors
                    .iter()
                    .map(u32::to_string)
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        ),
    ];
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
}

/// What is known of it as a service.
fn service(state: &ServiceStateBody) -> Vec<(&'static str, String)> {
    let ports: Vec<_> = state.ports.iter().map(|port| &port.bound).collect();
    let when = |at: Timestamp| clock(at, &TimeZone::system());
    let health = state.health.as_ref().map(|health| match health.ok {
        true => format!("well: {}", health.detail),
        false => format!("ill: {}", health.detail),
    });
    let rows = [
        ("service", Some(state.name.clone())),
        ("recognised", state.detected.clone()),
        (
            "defined in",
            state.defined_in.as_ref().map(ToString::to_string),
        ),
        ("url", state.url.clone()),
        (
            "ports",
            Some(words::ports(&ports)).filter(|told| !told.is_empty()),
        ),
        ("evidence", state.evidence.clone()),
        ("waits for", state.waits_for.clone()),
        ("health", health),
        (
            "restarts",
            (state.restarts > 0).then(|| state.restarts.to_string()),
        ),
        ("last end", state.last_end.clone()),
        ("next attempt", state.backoff_until.map(when)),
    ];
    let warnings = state.warnings.iter().map(|it| ("WARNING", it.clone()));
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .chain(warnings)
        .map(|(name, value)| (name, clean(&value).into_owned()))
        .collect()
}

fn isolation(info: &InfoBody) -> Vec<(&'static str, String)> {
    let isolation = &info.isolation;
    let mut rows = vec![("isolation", isolation.asked.to_string())];
    let names = isolation.in_force.iter().map(|it| it.as_str());
    rows.push(("in force", names.collect::<Vec<_>>().join(", ")));
    if !isolation.missing.is_empty() {
        rows.push(("MISSING", walls::pieces(&isolation.missing)));
    }
    if let Some(confinement) = &isolation.confinement {
        rows.extend(confined(confinement));
    }
    let limits = limits(info);
    if !limits.is_empty() {
        rows.push(("limits", limits));
    }
    let reached = super::walls::reached(info);
    rows.extend(reached.into_iter().map(|told| ("reached", told)));
    let autorun = walls::autorun(&info.isolation.autorun);
    rows.extend(autorun.into_iter().map(|told| ("autorun", told)));
    rows
}

/// What it sees and reaches.
fn confined(confinement: &ConfinementBody) -> Vec<(&'static str, String)> {
    let paths = |paths: &[Text]| {
        let told: Vec<String> = paths.iter().map(ToString::to_string).collect();
        Some(told.join(", ")).filter(|told| !told.is_empty())
    };
    let workspace = confinement.workspace.as_ref().map(ToString::to_string);
    let fate = confinement.overlay.map(|it| walls::fate(it).to_owned());
    let rows = [
        ("workspace", workspace),
        ("overlay", fate),
        ("network", Some(confinement.network.0.to_string())),
        ("reads also", paths(&confinement.read)),
        ("writes also", paths(&confinement.write)),
        ("protected", paths(&confinement.protect)),
    ];
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// `512 MiB memory, 0.5 cores, 4096 processes (cgroup_v2)`.
fn limits(info: &InfoBody) -> String {
    let limits = &info.isolation.limits;
    let size = |bytes: Option<u64>, what: &str| Some(format!("{} {what}", walls::size(bytes?)));
    let count = |count: Option<u32>, what: &str| Some(format!("{} {what}", count?));
    let cores = limits
        .cpu_millis
        .map(|millis| format!("{} cores", f64::from(millis) / 1_000.0));
    let told: Vec<String> = [
        size(limits.memory_bytes, "memory"),
        cores,
        count(limits.pids, "processes"),
        size(limits.disk_bytes, "disk"),
        count(limits.open_files, "open files"),
        size(limits.file_bytes, "a file"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if told.is_empty() {
        return String::new();
    }
    format!(
        "{} (by {})",
        told.join(", "),
        backend(info.isolation.backend)
    )
}

const fn backend(backend: LimitBackend) -> &'static str {
    match backend {
        LimitBackend::CgroupV2 => "cgroup v2",
        LimitBackend::CgroupV1 => "cgroup v1",
        LimitBackend::Rlimits => "rlimits",
        LimitBackend::None => "nothing",
    }
}

fn output(info: &InfoBody) -> String {
    let gone = match info.trimmed_bytes {
        0 => String::new(),
        gone => format!(", {gone} of them gone"),
    };
    format!("{} bytes{gone}", info.output_bytes)
}
