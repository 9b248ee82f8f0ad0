//! `ostler stats`.

use clap::Args;
use hyper::Method;
use jiff::tz::TimeZone;
use ostler_api::{ExecutionBody, ResourcesBody, UsageHistoryBody};
use ostler_render::isolation;
use serde::Serialize;

use super::{id_alias, ids, value_parsers, watch};
use crate::attach::window_size;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{TextTable, cells, format_duration, format_time, print_json};

/// The width of a table that is not shown on a terminal, in columns.
const COLUMNS: usize = 80;
/// The fewest characters of a command that are shown.
const MIN_CHARS: usize = 8;
/// The most executions that are measured if none is named.
const MAX_EXECUTIONS: &str = "100";

/// What `stats` takes.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Which executions; the running ones unless given
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Look again every second, until ctrl-c
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,
    /// What they used since then, instead of now: 10m, 2h, 2024-05-01T12:00:00Z; since the daemon
    /// was started at most
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past_time, conflicts_with = "watch")]
    since: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The usage of one execution.
#[derive(Debug, Serialize)]
struct ExecutionUsage {
    id: String,
    command: String,
    #[serde(flatten)]
    resources: ResourcesBody,
}

/// Shows the resource usage of executions; of ended ones, the final usage.
///
/// # Errors
/// When the daemon cannot be reached, or there is no such execution.
pub(crate) fn run(context: &CliContext, args: &StatsArgs) -> CommandResult {
    let client = context.client();
    if let Some(since) = &args.since {
        return show_history(&client, args, since);
    }
    let fetch = || fetch_usage(&client, &args.ids);
    if args.watch {
        return block_on(watch::watch(&context.env, fetch, |used| {
            usage_table(used).lines()
        }));
    }
    let usages = block_on(fetch())?;
    if args.json {
        print_json(&usages)?;
        return Ok(0);
    }
    let mut out = crate::output::StdoutWriter::new();
    usage_table(&usages).print(&mut out)?;
    out.flush()?;
    Ok(0)
}

/// What one execution used over time.
#[derive(Debug, Serialize)]
struct ExecutionHistory {
    id: String,
    command: String,
    #[serde(flatten)]
    history: UsageHistoryBody,
}

fn show_history(client: &DaemonClient, args: &StatsArgs, since: &str) -> CommandResult {
    let histories = block_on(fetch_histories(client, &args.ids, since))?;
    if args.json {
        print_json(&histories)?;
        return Ok(0);
    }
    let mut out = crate::output::StdoutWriter::new();
    history_table(&histories).print(&mut out)?;
    out.flush()?;
    Ok(0)
}

async fn fetch_histories(
    client: &DaemonClient,
    ids: &[String],
    since: &str,
) -> Result<Vec<ExecutionHistory>, CommandError> {
    let mut query = form_urlencoded::Serializer::new(String::from("/resources/history?"));
    let query = query.append_pair("since", since).finish();
    let mut histories = Vec::new();
    for info in resolve_executions(client, ids).await? {
        let path = ids::path(&info.id, &query);
        let response = client.call(Method::GET, &path, RequestBody::None).await;
        // An execution that was removed since it was listed is left out.
        if ids.is_empty() && response.is_err() {
            continue;
        }
        histories.push(ExecutionHistory {
            id: info.id,
            command: info.command,
            history: response?,
        });
    }
    Ok(histories)
}

fn history_table(histories: &[ExecutionHistory]) -> TextTable {
    let titles = [
        "ID",
        "TIME",
        "CPU",
        "MEMORY",
        "READ",
        "WRITTEN",
        "RECEIVED",
        "SENT",
        "PROCESSES",
    ];
    let mut table = TextTable::new(&titles);
    let bytes = |bytes: Option<u64>| bytes.map_or("-".to_owned(), isolation::format_bytes);
    for ExecutionHistory { id, history, .. } in histories {
        for point in &history.points {
            let cpu = point.cpu_percent;
            table.push_row(cells![
                id,
                format_time(point.at, &TimeZone::system()),
                cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.1}%")),
                isolation::format_bytes(point.memory_bytes),
                bytes(point.read_bytes),
                bytes(point.written_bytes),
                bytes(point.received_bytes),
                bytes(point.sent_bytes),
                point.processes.to_string(),
            ]);
        }
    }
    table
}

async fn fetch_usage(
    client: &DaemonClient,
    ids: &[String],
) -> Result<Vec<ExecutionUsage>, CommandError> {
    let mut usages = Vec::new();
    for info in resolve_executions(client, ids).await? {
        let path = ids::path(&info.id, "/resources");
        let response = client.call(Method::GET, &path, RequestBody::None).await;
        // An execution that was removed since it was listed is left out.
        if ids.is_empty() && response.is_err() {
            continue;
        }
        usages.push(ExecutionUsage {
            id: info.id,
            command: info.command,
            resources: response?,
        });
    }
    Ok(usages)
}

async fn resolve_executions(
    client: &DaemonClient,
    ids: &[String],
) -> Result<Vec<ExecutionBody>, CommandError> {
    if ids.is_empty() {
        let running = [("status", "running"), ("limit", MAX_EXECUTIONS)];
        return Ok(id_alias::list_executions(client, &running)
            .await?
            .executions);
    }
    let mut infos = Vec::new();
    for id in ids {
        let id = id_alias::resolve(client, id).await?;
        infos.push(ids::info(client, &id).await?);
    }
    Ok(infos)
}

fn usage_table(usages: &[ExecutionUsage]) -> TextTable {
    let mut table = TextTable::new(&["ID", "CPU", "MEMORY", "PROCESSES", "COMMAND"]);
    for usage in usages {
        let processes = usage.resources.processes.len();
        table.push_row(cells![
            &usage.id,
            format_duration(cpu_seconds(&usage.resources)),
            match processes {
                0 => "-".to_owned(),
                _ => isolation::format_bytes(usage.resources.memory_bytes),
            },
            processes.to_string(),
            &usage.command,
        ]);
    }
    let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
    table.fit_width("COMMAND", columns, MIN_CHARS);
    table
}

/// The processor time of its living processes and of those that ended.
fn cpu_seconds(resources: &ResourcesBody) -> f64 {
    const MICROS: f64 = 1e6;
    let ended = resources
        .usage
        .user_us
        .saturating_add(resources.usage.system_us);
    resources.cpu_seconds + ended as f64 / MICROS
}
