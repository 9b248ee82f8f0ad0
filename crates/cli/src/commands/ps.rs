//! `ostler ps`.

use clap::Args;
use hyper::Method;
use jiff::Timestamp;
use ostler_model::status::{PROCESS_STATUSES, ProcessStatus};
use ostler_server::render::clean;
use ostler_server::wire::{InfoBody, ListBody};

use crate::client::Body;
use crate::error::Outcome;
use crate::output::{Line, Out, Style, Table, ago, cells, print_json, span};
use crate::setup::{Setup, block_on};

/// Characters of a command that a table shows.
const COMMAND_CHARS: usize = 60;

/// What `ps` takes.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Also those that ended
    #[arg(short, long)]
    all: bool,
    /// Only those with this status: running, completed, failed, terminated or error
    #[arg(long, value_name = "STATUS", value_parser = status_word)]
    status: Option<ProcessStatus>,
    /// Only those with this label; with all of them where it is repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only ids
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Commands in full
    #[arg(long)]
    no_trunc: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

fn status_word(text: &str) -> Result<ProcessStatus, String> {
    ProcessStatus::parse(text).ok_or_else(|| {
        let known = PROCESS_STATUSES.map(ProcessStatus::as_str);
        format!("allowed: {}", known.join(", "))
    })
}

/// Lists executions.
///
/// # Errors
/// When the daemon cannot be asked.
pub(crate) fn run(setup: &Setup, args: PsArgs) -> Outcome {
    let client = setup.client();
    let list: ListBody = block_on(client.call(Method::GET, &query(&args), Body::None))?;
    if args.json {
        print_json(&list.executions)?;
        return Ok(0);
    }
    let mut out = Out::new();
    if args.quiet {
        list.executions
            .iter()
            .try_for_each(|info| out.line(&info.id))?;
    } else {
        table(
            &list.executions,
            Style::of_stdout(&setup.env),
            args.no_trunc,
        )
        .print(&mut out)?;
    }
    out.flush()?;
    tell_of_more(list.executions.len(), list.total, list.next.as_deref());
    Ok(0)
}

/// Says how many entries of a list there are where its window does not hold them all.
pub(crate) fn tell_of_more(shown: usize, total: Option<usize>, next: Option<&str>) {
    if let (Some(total), Some(_)) = (total, next) {
        crate::tell(&format!(
            "{shown} of {total} are shown; -n {total} shows all"
        ));
    }
}

fn query(args: &PsArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(String::from("/api/v1/executions?"));
    let status = match (args.status, args.all) {
        (Some(status), _) => Some(status),
        (None, true) => None,
        (None, false) => Some(ProcessStatus::Running),
    };
    if let Some(status) = status {
        query.append_pair("status", status.as_str());
    }
    for label in &args.label {
        query.append_pair("label", label);
    }
    if let Some(limit) = args.limit {
        query.append_pair("limit", &limit.to_string());
    }
    query.finish()
}

fn table(executions: &[InfoBody], style: Style, whole: bool) -> Table {
    // Where nothing is reached at a URL, none is shown.
    let with_urls = executions.iter().any(|info| url(info).is_some());
    let mut headings = vec!["ID", "STATUS", "EXIT", "CREATED", "TIME", "LABELS"];
    headings.extend(with_urls.then_some("URL"));
    headings.push("COMMAND");
    let mut table = Table::new(&headings);
    let now = Timestamp::now();
    for info in executions {
        let mut row = cells![
            &info.id,
            status(info, style),
            exit(info),
            info.created_at.map_or_else(String::new, |at| ago(at, now)),
            span(info.duration),
            info.labels.join(","),
        ];
        row.extend(with_urls.then(|| url(info).map_or_else(|| "-".into(), Line::from)));
        row.push(shown(&info.command, whole));
        table.row(row);
    }
    table
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
    let line = Line::from(command);
    if whole {
        return line;
    }
    line.shortened(COMMAND_CHARS)
}
