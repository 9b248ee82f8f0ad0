//! `ostler ps`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use hyper::Method;
use jiff::Timestamp;
use ostler_api::{ExecutionBody, ExecutionsBody};
use ostler_model::duration;
use ostler_model::status::ProcessStatus;
use ostler_render::clean;

use super::{value_parsers, watch};
use crate::attach::window_size;
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{
    StdoutWriter, Style, StyledLine, TextTable, cells, format_age, format_duration, print_json,
};

/// The width of a table that is not shown on a terminal, in columns.
const COLUMNS: usize = 80;
/// The fewest characters of a command and of labels that are shown, however narrow the table is.
const MIN_CHARS: usize = 8;
/// The characters of labels beyond which the command is not shortened in their favour.
const LABEL_CHARS: usize = 16;

/// What `ps` takes.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Also those that ended
    #[arg(short, long)]
    all: bool,
    /// Only those with this status: running, paused, completed, failed, terminated or error
    #[arg(long, value_name = "STATUS", value_parser = value_parsers::STATUS, hide_possible_values = true)]
    status: Option<&'static str>,
    /// Only those with this label; with all of them where it is repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Only those: status=…, label=… or name=…, a part of their description or of a service's
    /// name; with all of them where it is repeated
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = parse_filter)]
    filter: Vec<PsFilter>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only ids
    #[arg(short, long, conflicts_with_all = ["json", "format"])]
    quiet: bool,
    /// Commands, labels and all in full
    #[arg(long)]
    no_trunc: bool,
    /// As JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// As what
    #[arg(long, value_enum)]
    format: Option<PsFormat>,
    /// Show it anew when it changes, at most once a second, until ctrl-c
    #[arg(short, long, conflicts_with_all = ["json", "quiet", "format"])]
    watch: bool,
}

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PsFormat {
    /// Columns for people
    Table,
    /// One JSON document
    Json,
    /// An id on each line
    Ids,
}

/// One condition of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PsFilter {
    Status(&'static str),
    Label(String),
    Name(String),
}

fn parse_filter(text: &str) -> Result<PsFilter, String> {
    match text.split_once('=') {
        Some(("status", value)) => value_parsers::parse_status(value).map(PsFilter::Status),
        Some(("label", value)) => Ok(PsFilter::Label(value.to_owned())),
        Some(("name", value)) => Ok(PsFilter::Name(value.to_owned())),
        Some(_) | None => Err("allowed: status=…, label=…, name=…".to_owned()),
    }
}

/// Lists executions.
///
/// # Errors
/// When the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: PsArgs) -> CommandResult {
    let query = list_query(&args)?;
    let client = context.client();
    let style = Style::of_stdout(&context.env);
    let render = |list: &ExecutionsBody| executions_table(&list.executions, style, args.no_trunc);
    if args.watch {
        let fetch = || fetch_list(&client, &query);
        return block_on(watch::watch(&context.env, fetch, |list| {
            render(list).lines()
        }));
    }
    let list = block_on(fetch_list(&client, &query))?;
    let mut out = StdoutWriter::new();
    match format_of(&args) {
        PsFormat::Json => {
            print_json(&list.executions)?;
            return Ok(0);
        }
        PsFormat::Ids => {
            let mut ids = list.executions.iter().map(|info| &info.id);
            ids.try_for_each(|id| out.write_line(id))?;
        }
        PsFormat::Table => render(&list).print(&mut out)?,
    }
    out.flush()?;
    note_more_results(list.executions.len(), list.total, list.next.as_deref());
    Ok(0)
}

async fn fetch_list(client: &DaemonClient, query: &str) -> Result<ExecutionsBody, CommandError> {
    client.call(Method::GET, query, RequestBody::None).await
}

fn format_of(args: &PsArgs) -> PsFormat {
    match (args.json, args.quiet) {
        (true, _) => PsFormat::Json,
        (false, true) => PsFormat::Ids,
        (false, false) => args.format.unwrap_or(PsFormat::Table),
    }
}

/// Reports the total number of entries if the list was cut.
pub(crate) fn note_more_results(count: usize, total: Option<usize>, next: Option<&str>) {
    if let (Some(total), Some(_)) = (total, next) {
        crate::print_note(&format!(
            "{count} of {total} are shown; -n {total} shows all"
        ));
    }
}

fn list_query(args: &PsArgs) -> Result<String, CommandError> {
    let mut query = form_urlencoded::Serializer::new(String::from("/api/v1/executions?"));
    let mut statuses: Vec<&str> = args.status.into_iter().collect();
    let mut names = Vec::new();
    for label in &args.label {
        query.append_pair("label", label);
    }
    for filter in &args.filter {
        match filter {
            PsFilter::Status(status) => statuses.push(status),
            PsFilter::Label(label) => drop(query.append_pair("label", label)),
            PsFilter::Name(name) => names.push(name),
        }
    }
    statuses.dedup();
    if statuses.len() > 1 || names.len() > 1 {
        return Err(CommandError::value(
            "only one status and one name can be asked for at once",
        ));
    }
    let running = ProcessStatus::Running.as_str();
    let status = statuses.pop().or((!args.all).then_some(running));
    query.extend_pairs(status.map(|status| ("status", status)));
    query.extend_pairs(names.pop().map(|name| ("name", name)));
    query.extend_pairs(args.limit.map(|limit| ("limit", limit.to_string())));
    Ok(query.finish())
}

/// The table; empty columns are left out, and without `no_trunc` it is fitted to the width of
/// the terminal, where possible.
fn executions_table(executions: &[ExecutionBody], style: Style, no_trunc: bool) -> TextTable {
    let any = |has: fn(&ExecutionBody) -> bool| executions.iter().any(has);
    let with_exits = any(ExecutionBody::is_finished);
    let with_labels = any(|info| !info.labels.is_empty());
    let with_urls = any(|info| service_url(info).is_some());
    let with_usual = any(|info| info.usual.is_some());
    let mut headings = vec!["ID", "STATUS"];
    headings.extend(with_exits.then_some("EXIT"));
    headings.extend(["CREATED", "TIME"]);
    headings.extend(with_usual.then_some("USUALLY"));
    headings.extend(with_labels.then_some("LABELS"));
    headings.extend(with_urls.then_some("URL"));
    headings.push("COMMAND");
    let mut table = TextTable::new(&headings);
    let now = Timestamp::now();
    for info in executions {
        let mut row = cells![&info.id, status_or_paused(info, style)];
        row.extend(with_exits.then(|| exit_text(info).into()));
        row.push(
            info.created_at
                .map_or_else(StyledLine::default, |at| format_age(at, now).into()),
        );
        row.push(format_duration(info.duration).into());
        row.extend(with_usual.then(|| usual_duration(info).into()));
        row.extend(with_labels.then(|| info.labels.join(",").into()));
        row.extend(
            with_urls.then(|| service_url(info).map_or_else(|| "-".into(), StyledLine::from)),
        );
        row.push(StyledLine::from(&info.command));
        table.push_row(row);
    }
    if !no_trunc {
        let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
        table.shorten("LABELS", LABEL_CHARS);
        table.fit_width("COMMAND", columns, MIN_CHARS);
        table.fit_width("LABELS", columns, MIN_CHARS);
    }
    table
}

/// The median duration of the same command.
fn usual_duration(info: &ExecutionBody) -> String {
    info.usual.as_ref().map_or_else(
        || "-".to_owned(),
        |usual| duration::compact(Duration::from_millis(usual.median_ms)),
    )
}

/// The status, or that it is frozen.
fn status_or_paused(info: &ExecutionBody, style: Style) -> StyledLine {
    if info.paused && !info.is_finished() {
        return style.service(value_parsers::PAUSED);
    }
    status(info, style)
}

/// The status; that of a service by its stage.
pub(crate) fn status(info: &ExecutionBody, style: Style) -> StyledLine {
    match &info.service {
        Some(state) => style.service(&state.status),
        None => style.status(info.status),
    }
}

/// The URL of a running service.
fn service_url(info: &ExecutionBody) -> Option<String> {
    let state = info.service.as_deref().filter(|_| !info.is_finished())?;
    Some(clean(state.url.as_deref()?).into_owned())
}

fn exit_text(info: &ExecutionBody) -> String {
    match (info.exit_code, &info.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => signal.clone(),
        (None, None) => "-".to_owned(),
    }
}

/// One line of a command.
pub(crate) fn command_cell(command: &str, no_trunc: bool) -> StyledLine {
    const COMMAND_CHARS: usize = 60;
    let line = StyledLine::from(command);
    if no_trunc {
        return line;
    }
    line.shortened(COMMAND_CHARS)
}
