//! `ostler history`.

use std::time::Duration;

use clap::{Args, Subcommand};
use hyper::Method;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_api::{
    HistoryDetailBody, HistoryEntryBody, HistoryFreshnessBody, HistoryPageBody, RunStatisticsBody,
};
use ostler_model::duration;
use ostler_render::isolation::format_bytes;

use super::context::project_name;
use super::value_parsers;
use crate::attach::window_size;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{
    StdoutWriter, StyledLine, TextTable, cells, format_age, format_duration, format_time,
    print_json,
};

/// The width of a table that is not shown on a terminal, in columns.
const COLUMNS: usize = 80;
/// The fewest characters of a command that are shown.
const MIN_CHARS: usize = 8;

const ABOUT: &str = "\
Executions are remembered for as long as the audit log is kept, 90 days unless configured
otherwise, also when their output was removed. --text finds a part of the command line. Where more
match than are shown, the last line says how to go on.";

/// What `history` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = ABOUT)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    verb: Option<HistoryVerb>,
    #[command(flatten)]
    list: HistoryListArgs,
}

impl HistoryArgs {
    /// The execution that is shown.
    pub(crate) fn id_mut(&mut self) -> Option<&mut String> {
        match &mut self.verb {
            Some(HistoryVerb::Show(args)) => Some(&mut args.id),
            Some(HistoryVerb::Rebuild) | None => None,
        }
    }
}

/// The verbs of `history`.
#[derive(Debug, Subcommand)]
enum HistoryVerb {
    /// Show everything remembered of one execution, and how its command usually ends
    Show(HistoryShowArgs),
    /// Make the history anew from the audit log
    Rebuild,
}

/// What `history show` takes.
#[derive(Debug, Args)]
struct HistoryShowArgs {
    /// The execution
    #[arg(value_name = "ID")]
    id: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What a list takes.
#[derive(Debug, Args)]
struct HistoryListArgs {
    /// Only those with this status: running, succeeded, failed, timed_out, stopped or lost
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only those with this in their command line
    #[arg(short, long, value_name = "TEXT")]
    text: Option<String>,
    /// Only those with this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Only those of this project
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Only those of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only those requested then or later: 10m, 2h, 2024-05-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past_time)]
    since: Option<String>,
    /// Only those requested before then
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past_time)]
    until: Option<String>,
    /// Only those before this position
    #[arg(long, value_name = "POSITION")]
    before: Option<u64>,
    /// At most so many, up to 500
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Commands in full
    #[arg(long)]
    no_trunc: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// When the daemon cannot be reached, or its history cannot be read.
pub(crate) fn run(context: &CliContext, args: &HistoryArgs) -> CommandResult {
    let client = context.client();
    match &args.verb {
        Some(HistoryVerb::Show(args)) => show(&client, args),
        Some(HistoryVerb::Rebuild) => rebuild(&client),
        None => list(&client, &args.list),
    }
}

fn list(client: &DaemonClient, args: &HistoryListArgs) -> CommandResult {
    let path = list_path(args);
    let page: HistoryPageBody = block_on(client.call(Method::GET, &path, RequestBody::None))?;
    if args.json {
        print_json(&page)?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    table(&page.executions, args.no_trunc).print(&mut out)?;
    out.flush()?;
    if let Some(next) = page.next {
        crate::print_note(&format!(
            "there are more; --before {next} shows the next ones"
        ));
    }
    note_lateness(&page.freshness);
    Ok(0)
}

fn list_path(args: &HistoryListArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(String::from("/api/v1/history?"));
    // A directory that is gone has a history, too.
    let resolved =
        |name: &String| project_name(Some(name.clone())).unwrap_or_else(|_| name.clone());
    let project = args.project.as_ref().map(resolved);
    let texts = [
        ("status", &args.status),
        ("text", &args.text),
        ("label", &args.label),
        ("project", &project),
        ("session", &args.session),
        ("since", &args.since),
        ("until", &args.until),
    ];
    for (name, value) in texts {
        query.extend_pairs(value.as_ref().map(|value| (name, value)));
    }
    query.extend_pairs(args.before.map(|before| ("before", before.to_string())));
    query.append_pair("limit", &args.limit.to_string());
    query.finish()
}

fn table(executions: &[HistoryEntryBody], no_trunc: bool) -> TextTable {
    let mut table = TextTable::new(&["ID", "STATUS", "EXIT", "CREATED", "TIME", "COMMAND"]);
    let now = Timestamp::now();
    for execution in executions {
        let time = execution.duration_ms.map_or_else(String::new, format_ms);
        table.push_row(cells![
            &execution.id,
            execution.status.replace('_', " "),
            exit_text(execution),
            format_age(execution.created_at, now),
            time,
            StyledLine::from(&execution.command),
        ]);
    }
    if !no_trunc {
        let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
        table.fit_width("COMMAND", columns, MIN_CHARS);
    }
    table
}

fn exit_text(execution: &HistoryEntryBody) -> String {
    match (execution.exit_code, execution.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "-".to_owned(),
    }
}

fn show(client: &DaemonClient, args: &HistoryShowArgs) -> CommandResult {
    let id: String = form_urlencoded::byte_serialize(args.id.as_bytes()).collect();
    let path = format!("/api/v1/history/{id}");
    let detail: HistoryDetailBody = block_on(client.call(Method::GET, &path, RequestBody::None))?;
    if args.json {
        print_json(&detail)?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    for (name, value) in fields(&detail) {
        out.write_line(format!("{name:12}{value}"))?;
    }
    out.flush()?;
    note_lateness(&detail.freshness);
    Ok(0)
}

/// The lines for people: name and value.
fn fields(detail: &HistoryDetailBody) -> Vec<(&'static str, String)> {
    let execution = &detail.execution;
    let time = |at: Timestamp| format_time(at, &TimeZone::system());
    let mut fields = vec![
        ("id", execution.uuid.to_string()),
        ("command", execution.command.clone()),
        ("directory", execution.cwd.clone()),
        ("status", status_text(execution)),
        ("created", time(execution.created_at)),
    ];
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("started", execution.started_at.map(time));
    add("ended", execution.ended_at.map(time));
    add("duration", execution.duration_ms.map(format_ms));
    add("usually", detail.usual.as_ref().map(usual_text));
    add(
        "attempts",
        (execution.attempts > 1).then(|| execution.attempts.to_string()),
    );
    if let Some(totals) = &execution.totals {
        let processor = Duration::from_micros(totals.user_us + totals.system_us);
        let bytes = |count: Option<u64>| count.map(format_bytes);
        let cpu = totals.peak_cpu_percent;
        add("processor", Some(duration::compact(processor)));
        add(
            "at most",
            cpu.map(|percent| format!("{percent:.1}% of one core")),
        );
        add("memory", Some(format_bytes(totals.max_rss_bytes)));
        add("of the tree", bytes(totals.peak_memory_bytes));
        add("processes", totals.peak_processes.map(|it| it.to_string()));
        add("growth", bytes(totals.peak_disk_bytes));
        add("read", bytes(totals.read_bytes));
        add("written", bytes(totals.written_bytes));
        add("received", bytes(totals.received_bytes));
        add("sent", bytes(totals.sent_bytes));
        add("output", Some(format_bytes(totals.output_bytes)));
        add("lines", totals.output_lines.map(|it| it.to_string()));
        add(
            "prompts",
            (totals.prompts > 0).then(|| totals.prompts.to_string()),
        );
    }
    add("client", Some(execution.client.clone()));
    add("principal", Some(execution.principal.clone()));
    add("project", execution.project.clone());
    add("session", execution.session.clone());
    add("task", execution.task.clone());
    let list = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
    add("labels", list(&execution.labels));
    add("isolation", Some(execution.level.clone()));
    add("in force", list(&execution.in_force));
    add(
        "policy",
        (!execution.policy.is_empty()).then(|| execution.policy.clone()),
    );
    fields
}

fn status_text(execution: &HistoryEntryBody) -> String {
    let mut text = execution.status.replace('_', " ");
    match (execution.exit_code, execution.signal) {
        (Some(code), _) => text.push_str(&format!(", exit code {code}")),
        (None, Some(signal)) => text.push_str(&format!(", signal {signal}")),
        (None, None) => {}
    }
    if let Some(cause) = execution.cause.as_deref()
        && !["exited", "timed_out", "stopped", "lost"].contains(&cause)
    {
        text.push_str(&format!(" ({})", cause.replace('_', " ")));
    }
    text
}

/// One sentence, for example `4m 10s, 9 in 10 below 6m; 1 of 20 failed; 300 MB of memory`.
fn usual_text(usual: &RunStatisticsBody) -> String {
    let memory = format_bytes(usual.peak_memory_bytes);
    format!("{}; {memory} of memory", usual.describe())
}

fn format_ms(milliseconds: u64) -> String {
    format_duration(Duration::from_millis(milliseconds).as_secs_f64())
}

fn rebuild(client: &DaemonClient) -> CommandResult {
    let path = "/api/v1/history/rebuild";
    let freshness: HistoryFreshnessBody =
        block_on(client.call(Method::POST, path, RequestBody::None))?;
    if freshness.behind == 0 && freshness.behind_reason.is_none() {
        crate::print_note("the history was made anew");
        return Ok(0);
    }
    if let Some(reason) = freshness.behind_reason {
        return Err(CommandError::new(ostler_model::ErrorCode::Storage, reason));
    }
    note_lateness(&freshness);
    Ok(0)
}

fn note_lateness(freshness: &HistoryFreshnessBody) {
    if let Some(reason) = &freshness.behind_reason {
        crate::print_note(&format!("the history is not up to date: {reason}"));
    } else if freshness.behind > 0 {
        let behind = freshness.behind;
        crate::print_note(&format!("the newest {behind} events are not included yet"));
    }
}
