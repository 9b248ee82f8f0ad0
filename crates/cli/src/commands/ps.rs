//! `ostler ps`.

use clap::{Args, ValueEnum};
use hyper::Method;
use jiff::Timestamp;
use ostler_model::status::{PROCESS_STATUSES, ProcessStatus};
use ostler_server::render::clean;
use ostler_server::wire::{InfoBody, ListBody};

use super::watch;
use crate::attach::window_size;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Line, Out, Style, Table, ago, cells, print_json, span};
use crate::setup::{Setup, block_on};

/// Columns of a table that nobody's terminal shows.
const COLUMNS: usize = 80;
/// The fewest characters of a command and of labels that are shown, however narrow it is.
const LEAST_CHARS: usize = 8;
/// Characters of labels beyond which the command is not shortened for them.
const LABEL_CHARS: usize = 16;
/// Frozen, as a status that can be asked for.
const PAUSED: &str = "paused";

/// What `ps` takes.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Also those that ended
    #[arg(short, long)]
    all: bool,
    /// Only those with this status: running, paused, completed, failed, terminated or error
    #[arg(long, value_name = "STATUS", value_parser = status_word)]
    status: Option<&'static str>,
    /// Only those with this label; with all of them where it is repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Only those: status=…, label=… or name=…, a part of their description or of a service's
    /// name; with all of them where it is repeated
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = filter)]
    filter: Vec<Filter>,
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

/// As what a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PsFormat {
    /// Columns for people
    Table,
    /// One JSON document
    Json,
    /// An id on each line
    Ids,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Filter {
    Status(&'static str),
    Label(String),
    Name(String),
}

fn status_word(text: &str) -> Result<&'static str, String> {
    if text == PAUSED {
        return Ok(PAUSED);
    }
    let known = ProcessStatus::parse(text).map(ProcessStatus::as_str);
    known.ok_or_else(|| {
        let known = PROCESS_STATUSES.map(ProcessStatus::as_str);
        format!("allowed: {}, {PAUSED}", known.join(", "))
    })
}

fn filter(text: &str) -> Result<Filter, String> {
    match text.split_once('=') {
        Some(("status", value)) => status_word(value).map(Filter::Status),
        Some(("label", value)) => Ok(Filter::Label(value.to_owned())),
        Some(("name", value)) => Ok(Filter::Name(value.to_owned())),
        Some(_) | None => Err("allowed: status=…, label=…, name=…".to_owned()),
    }
}

/// Lists executions.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: PsArgs) -> Outcome {
    let query = query(&args)?;
    let client = setup.client();
    let style = Style::of_stdout(&setup.env);
    let shown = |list: &ListBody| table(&list.executions, style, args.no_trunc);
    if args.watch {
        let look = || list(&client, &query);
        return block_on(watch::watch(look, |list| shown(list).lines()));
    }
    let list = block_on(list(&client, &query))?;
    let mut out = Out::new();
    match format_of(&args) {
        PsFormat::Json => {
            print_json(&list.executions)?;
            return Ok(0);
        }
        PsFormat::Ids => {
            let mut ids = list.executions.iter().map(|info| &info.id);
            ids.try_for_each(|id| out.line(id))?;
        }
        PsFormat::Table => shown(&list).print(&mut out)?,
    }
    out.flush()?;
    tell_of_more(list.executions.len(), list.total, list.next.as_deref());
    Ok(0)
}

async fn list(client: &Client, query: &str) -> Result<ListBody, CommandError> {
    client.call(Method::GET, query, Body::None).await
}

fn format_of(args: &PsArgs) -> PsFormat {
    match (args.json, args.quiet) {
        (true, _) => PsFormat::Json,
        (false, true) => PsFormat::Ids,
        (false, false) => args.format.unwrap_or(PsFormat::Table),
    }
}

/// Says how many entries of a list there are where its window does not hold them all.
pub(crate) fn tell_of_more(shown: usize, total: Option<usize>, next: Option<&str>) {
    if let (Some(total), Some(_)) = (total, next) {
        crate::tell(&format!(
            "{shown} of {total} are shown; -n {total} shows all"
        ));
    }
}

fn query(args: &PsArgs) -> Result<String, CommandError> {
    let mut query = form_urlencoded::Serializer::new(String::from("/api/v1/executions?"));
    let mut statuses: Vec<&str> = args.status.into_iter().collect();
    let mut names = Vec::new();
    for label in &args.label {
        query.append_pair("label", label);
    }
    for filter in &args.filter {
        match filter {
            Filter::Status(status) => statuses.push(status),
            Filter::Label(label) => drop(query.append_pair("label", label)),
            Filter::Name(name) => names.push(name),
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

/// The table; columns in which there is nothing are left out, and unless it is to be `whole`
/// it is as wide as where it is shown, where that can be.
fn table(executions: &[InfoBody], style: Style, whole: bool) -> Table {
    let any = |has: fn(&InfoBody) -> bool| executions.iter().any(has);
    let with_exits = any(InfoBody::is_finished);
    let with_labels = any(|info| !info.labels.is_empty());
    let with_urls = any(|info| url(info).is_some());
    let mut headings = vec!["ID", "STATUS"];
    headings.extend(with_exits.then_some("EXIT"));
    headings.extend(["CREATED", "TIME"]);
    headings.extend(with_labels.then_some("LABELS"));
    headings.extend(with_urls.then_some("URL"));
    headings.push("COMMAND");
    let mut table = Table::new(&headings);
    let now = Timestamp::now();
    for info in executions {
        let mut row = cells![&info.id, standing(info, style)];
        row.extend(with_exits.then(|| exit(info).into()));
        row.push(
            info.created_at
                .map_or_else(Line::default, |at| ago(at, now).into()),
        );
        row.push(span(info.duration).into());
        row.extend(with_labels.then(|| info.labels.join(",").into()));
        row.extend(with_urls.then(|| url(info).map_or_else(|| "-".into(), Line::from)));
        row.push(Line::from(&info.command));
        table.row(row);
    }
    if !whole {
        let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
        table.shorten("LABELS", LABEL_CHARS);
        table.fit("COMMAND", columns, LEAST_CHARS);
        table.fit("LABELS", columns, LEAST_CHARS);
    }
    table
}

/// Its status, or that it is frozen.
fn standing(info: &InfoBody, style: Style) -> Line {
    if info.paused && !info.is_finished() {
        return style.service(PAUSED);
    }
    status(info, style)
}

/// Its status; a service's in the words of services.
pub(crate) fn status(info: &InfoBody, style: Style) -> Line {
    match &info.service {
        Some(state) => style.service(&state.status),
        None => style.status(info.status),
    }
}

/// Where a living service is reached.
fn url(info: &InfoBody) -> Option<String> {
    let state = info.service.as_deref().filter(|_| !info.is_finished())?;
    Some(clean(state.url.as_deref()?).into_owned())
}

fn exit(info: &InfoBody) -> String {
    match (info.exit_code, &info.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => signal.clone(),
        (None, None) => "-".to_owned(),
    }
}

/// One line of a command.
pub(crate) fn shown(command: &str, whole: bool) -> Line {
    const COMMAND_CHARS: usize = 60;
    let line = Line::from(command);
    if whole {
        return line;
    }
    line.shortened(COMMAND_CHARS)
}
