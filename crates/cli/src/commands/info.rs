//! `ostler info`.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_api::{ExecutionBody, RunStatisticsBody, SandboxInfoBody, ServiceStateBody};
use ostler_model::{
    ByteString, Capability, ContainerSpec, IsolationLevel, LimitBackend, VolumeMount,
};
use ostler_render::{clean, isolation, service as words};

use super::{ids, refused_hosts};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::executions::end;
use crate::output::{
    StdoutWriter, Style, StyledLine, format_duration, format_time, line, print_json,
};

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

/// Shows all information about each execution.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &InfoArgs) -> CommandResult {
    let client = context.client();
    let style = Style::of_stdout(&context.env);
    block_on(ids::for_each(&client, &args.ids, |id| {
        let client = &client;
        async move {
            let info = ids::info(client, &id).await?;
            if args.json {
                return print_json(&info);
            }
            print(&info, refused_hosts::describe(client, &info).await, style)
        }
    }))
}

fn print(info: &ExecutionBody, refused: Option<String>, style: Style) -> Result<(), CommandError> {
    const NAME_CHARS: usize = 12;
    let mut out = StdoutWriter::new();
    let refused = refused.map(|hosts| ("refused", StyledLine::from(hosts)));
    for (name, value) in rows(info, style).into_iter().chain(refused) {
        let name = style.dim(&format!("{name:NAME_CHARS$}"));
        out.write_line(line![name, " ", value])?;
    }
    out.flush()
}

fn rows(info: &ExecutionBody, style: Style) -> Vec<(&'static str, StyledLine)> {
    let zone = TimeZone::system();
    let time =
        |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| format_time(at, &zone));
    let mut rows = vec![
        ("id", line![format!("{} ({})", info.id, info.uuid)]),
        ("command", line![&info.command]),
        ("directory", line![&info.directory]),
        ("status", status(info, style)),
        ("created", line![time(info.created_at)]),
        ("started", line![time(info.start_time)]),
        ("ended", line![time(info.end_time)]),
        ("duration", line![format_duration(info.duration)]),
    ];
    let service = info.service.iter().flat_map(|state| service_rows(state));
    let more = optional_rows(info)
        .chain(service)
        .chain(isolation_rows(info));
    rows.extend(more.map(|(name, value)| (name, value.into())));
    rows.push(("output", describe_output(info).into()));
    rows
}

fn status(info: &ExecutionBody, style: Style) -> StyledLine {
    let status = super::ps::status(info, style);
    if info.paused && !info.is_finished() {
        status.and(", paused")
    } else {
        status
    }
}

fn optional_rows(info: &ExecutionBody) -> impl Iterator<Item = (&'static str, String)> {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let seconds = info.timeout.map(format_duration);
    let rows = [
        ("description", text(&info.description)),
        ("labels", text(&info.labels.join(", "))),
        ("exit code", info.exit_code.map(|code| code.to_string())),
        ("signal", info.signal.clone()),
        ("ended by", info.error_message.clone()),
        ("stop reason", info.stop_reason.clone()),
        ("pid", info.os_pid.map(|pid| pid.to_string())),
        ("timeout", seconds),
        (
            "usually",
            info.usual.as_ref().map(RunStatisticsBody::describe),
        ),
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

/// The rows about it as a service.
fn service_rows(state: &ServiceStateBody) -> Vec<(&'static str, String)> {
    let ports: Vec<_> = state.ports.iter().map(|port| &port.bound).collect();
    let time = |at: Timestamp| format_time(at, &TimeZone::system());
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
            Some(words::render_ports(&ports)).filter(|joined| !joined.is_empty()),
        ),
        ("evidence", state.evidence.clone()),
        ("waits for", state.waits_for.clone()),
        ("health", health),
        (
            "restarts",
            (state.restarts > 0).then(|| state.restarts.to_string()),
        ),
        ("last end", state.last_end.clone()),
        ("next attempt", state.backoff_until.map(time)),
    ];
    let warnings = state.warnings.iter().map(|it| ("WARNING", it.clone()));
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .chain(warnings)
        .map(|(name, value)| (name, clean(&value).into_owned()))
        .collect()
}

fn isolation_rows(info: &ExecutionBody) -> Vec<(&'static str, String)> {
    let isolation = &info.isolation;
    let mut rows = vec![("isolation", isolation.requested.to_string())];
    let names = isolation.in_force.iter().map(|it| it.as_str());
    rows.push(("in force", names.collect::<Vec<_>>().join(", ")));
    if isolation.requested < IsolationLevel::High {
        rows.push(("scope", isolation::SESSION_NOTE.to_owned()));
    }
    if !isolation.missing.is_empty() {
        rows.push(("MISSING", isolation::describe_missing(&isolation.missing)));
    }
    if let Some(confinement) = &isolation.confinement {
        rows.extend(sandbox_rows(confinement));
    }
    if let Some(container) = &isolation.container {
        rows.extend(container_rows(container));
    }
    let limits = describe_limits(info);
    if !limits.is_empty() {
        rows.push(("limits", limits));
    }
    let reached = end::limits_reached(info);
    rows.extend(reached.into_iter().map(|limit| ("reached", limit)));
    let autorun = isolation::describe_autorun(&info.isolation.autorun);
    rows.extend(autorun.into_iter().map(|line| ("autorun", line)));
    rows
}

/// The rows about its sandbox.
fn sandbox_rows(confinement: &SandboxInfoBody) -> Vec<(&'static str, String)> {
    let paths = |paths: &[ByteString]| {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        Some(paths.join(", ")).filter(|joined| !joined.is_empty())
    };
    let workspace = confinement.workspace.as_ref().map(ToString::to_string);
    let overlay = confinement
        .overlay
        .map(|it| isolation::outcome_word(it).to_owned());
    let rows = [
        ("workspace", workspace),
        ("overlay", overlay),
        ("network", Some(confinement.network.0.to_string())),
        ("reads also", paths(&confinement.read)),
        ("writes also", paths(&confinement.write)),
        ("protected", paths(&confinement.protect)),
    ];
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// The rows about its container.
fn container_rows(container: &ContainerSpec) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("image", container.image.clone()),
        ("workspace", container.workspace.to_string()),
        ("network", container.network.clone()),
    ];
    rows.extend(container.user.clone().map(|user| ("user", user)));
    let volumes: Vec<String> = container.volumes.iter().map(describe_volume).collect();
    let lists = [
        ("volumes", volumes),
        ("capabilities", container.cap_add.clone()),
    ];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    rows.extend(lists.map(|(name, list)| (name, list.join(", "))));
    let loosened = [
        (!container.read_only_root, "writable root"),
        (!container.no_new_privileges, "new privileges"),
    ];
    let loosened: Vec<&str> = loosened
        .iter()
        .filter(|(is, _)| *is)
        .map(|it| it.1)
        .collect();
    if !loosened.is_empty() {
        rows.push(("loosened", loosened.join(", ")));
    }
    rows
}

fn describe_volume(volume: &VolumeMount) -> String {
    let write = if volume.write { ":rw" } else { "" };
    format!("{}:{}{write}", volume.host, volume.container)
}

/// `512 MiB memory, 0.5 cores, 4096 processes (by cgroup v2), 1 GiB disk (watched), 100 open files (by
/// rlimits)`.
fn describe_limits(info: &ExecutionBody) -> String {
    let limits = &info.isolation.limits;
    let in_force = |limit: Option<String>, ability: Capability| {
        let is_missing = info
            .isolation
            .missing
            .iter()
            .any(|it| it.ability == ability);
        Some(match is_missing {
            true => format!("{} not in force", limit?),
            false => limit?,
        })
    };
    let size = |bytes: Option<u64>, what: &str| {
        Some(format!("{} {what}", isolation::format_bytes(bytes?)))
    };
    let count = |count: Option<u32>, what: &str| Some(format!("{} {what}", count?));
    let cores = limits
        .cpu_millis
        .map(|millis| format!("{} cores", f64::from(millis) / 1_000.0));
    let by_backend = [
        in_force(size(limits.memory_bytes, "memory"), Capability::MemoryLimit),
        in_force(cores, Capability::CpuLimit),
        in_force(count(limits.pids, "processes"), Capability::PidsLimit),
    ];
    let disk = in_force(size(limits.disk_bytes, "disk"), Capability::DiskLimit);
    let files = [
        count(limits.open_files, "open files"),
        size(limits.file_bytes, "a file"),
    ];
    let backend = format!("by {}", backend_name(info.isolation.backend));
    let in_container = info.isolation.requested == IsolationLevel::Container;
    let (disk_means, file_means) = match in_container {
        true => (backend.as_str(), backend.as_str()),
        false => ("watched", "by rlimits"),
    };
    let groups = [
        limit_group(by_backend, &backend),
        limit_group([disk], disk_means),
        limit_group(files, file_means),
    ];
    groups.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Limits and what holds a command to them; none where there are none.
fn limit_group<const N: usize>(limits: [Option<String>; N], means: &str) -> Option<String> {
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| format!("{} ({means})", limits.join(", ")))
}

const fn backend_name(backend: LimitBackend) -> &'static str {
    match backend {
        LimitBackend::CgroupV2 => "cgroup v2",
        LimitBackend::CgroupV1 => "cgroup v1",
        LimitBackend::Rlimits => "rlimits",
        LimitBackend::None => "nothing",
    }
}

fn describe_output(info: &ExecutionBody) -> String {
    let missing = match info.trimmed_bytes {
        0 => String::new(),
        gone => format!(", {gone} of them gone"),
    };
    format!("{} bytes{missing}", info.output_bytes)
}
