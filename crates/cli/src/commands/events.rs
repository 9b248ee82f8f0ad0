//! `ostler events`.

use clap::Args;
use hyper::Method;
use jiff::tz::TimeZone;
use ostler_api::{DamagedEntriesBody, EventBody, EventsBody};
use ostler_model::event::DegradedCapability;
use ostler_model::{AlertKind, Event, RequestedAction, duration};
use ostler_render::isolation;
use tokio::signal::unix::{SignalKind, signal};

use super::{ids, value_parsers};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, format_time};

/// The longest wait of one request for events, in milliseconds.
const WAIT_MS: u64 = 30_000;
/// The most characters of an event's details.
const ABOUT_CHARS: usize = 160;

const ABOUT: &str = "\
Prints a line per event and goes on until ctrl-c: without ID what happens to everything you see,
from now on or from --since; with ID what happened to that one from its beginning, until it has
ended. --no-follow ends with what there is. A daemon that ends or dies meanwhile is followed by the
next one, and nothing is missed; --since-cursor goes on after an event that --json
showed.

Events are those of the audit trail: created, refused, started, ready, health, restarting, backoff,
stopping, limit_hit, degraded, adopted, trimmed, requested, interaction, finished and others. Output
is not among them.";

/// What `events` takes.
#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub(crate) struct EventsArgs {
    /// Only those of this execution; ends with it
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// From then on: 10m, 2h, 2024-05-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past_time)]
    since: Option<String>,
    /// After the event with this cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "since")]
    since_cursor: Option<u64>,
    /// End with what there is
    #[arg(long)]
    no_follow: bool,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

/// Prints events.
///
/// # Errors
/// When there is no such execution, or the daemon cannot be reached.
pub(crate) fn run(context: &CliContext, args: &EventsArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())
            .map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))?;
        tokio::select! {
            result = follow(&client, args) => result,
            _ = interrupt.recv() => Ok(0),
        }
    })
}

async fn follow(client: &DaemonClient, args: &EventsArgs) -> CommandResult {
    let (mut id, mut has_ended) = (None, false);
    if let Some(requested) = &args.id {
        let info = ids::info(client, requested).await?;
        has_ended = info.is_finished();
        id = Some(info.id);
    }
    let mut cursor = args.since_cursor;
    loop {
        let path = path(args, id.as_deref(), cursor);
        let page: EventsBody = client.call(Method::GET, &path, RequestBody::None).await?;
        let mut out = StdoutWriter::new();
        for event in &page.events {
            print(&mut out, event, args.json)?;
        }
        out.flush()?;
        for entries in &page.damaged {
            report_damaged(*entries);
        }
        let is_finished = id.is_some() && page.events.iter().any(is_end_event);
        if is_finished || ((args.no_follow || has_ended) && !page.behind) {
            return Ok(0);
        }
        cursor = Some(page.next);
    }
}

/// Reports on stderr that events are missing, since stdout is for programs.
fn report_damaged(entries: DamagedEntriesBody) {
    let DamagedEntriesBody { first, last } = entries;
    let what = if first == last {
        format!("entry {first} of the audit log cannot be read")
    } else {
        format!("entries {first} to {last} of the audit log cannot be read")
    };
    crate::print_note(&format!(
        "{what}: its events are missing; find the cause with: ostler audit verify"
    ));
}

const fn is_end_event(event: &EventBody) -> bool {
    matches!(event.event, Event::Finished { .. })
}

fn path(args: &EventsArgs, id: Option<&str>, cursor: Option<u64>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(id) = id {
        query.append_pair("id", id);
    }
    if let Some(cursor) = cursor {
        query.append_pair("cursor", &cursor.to_string());
    } else if let Some(since) = &args.since {
        query.append_pair("since", since);
    } else if args.no_follow && id.is_none() {
        // Without a start, from the first event on.
        query.append_pair("cursor", "0");
    }
    if !args.no_follow {
        query.append_pair("wait_ms", &WAIT_MS.to_string());
    }
    format!("/api/v1/events?{}", query.finish())
}

fn print(out: &mut StdoutWriter, event: &EventBody, json: bool) -> Result<(), CommandError> {
    let value = serde_json::to_value(event).unwrap_or_default();
    if json {
        out.write_raw(value.to_string().as_bytes())?;
        return out.write_raw(b"\n");
    }
    let name = value.get("event").and_then(|it| it.as_str());
    let at = format_time(event.at, &TimeZone::system());
    let id = event.id.as_deref().unwrap_or("-");
    let about: String = describe_event(event, &value)
        .chars()
        .take(ABOUT_CHARS)
        .collect();
    let line = format!("{at}  {id:8}  {}  {about}", name.unwrap_or("-"));
    out.write_line(line.trim_end())
}

/// A value of an alert in the unit of its kind.
fn format_amount(kind: AlertKind, amount: u64) -> String {
    match kind {
        AlertKind::Cpu => format!("{amount}%"),
        AlertKind::Memory | AlertKind::Disk => isolation::format_bytes(amount),
        AlertKind::RunTime | AlertKind::Idle => {
            duration::compact(std::time::Duration::from_millis(amount))
        }
    }
}

/// The details of an event on one line.
fn describe_event(event: &EventBody, value: &serde_json::Value) -> String {
    if let Event::Finished { ending } = &event.event {
        return ending.describe();
    }
    if let Event::Refused { message, .. } = &event.event {
        return message.clone();
    }
    if let Event::Degraded {
        ability: DegradedCapability::Enforcement(ability),
        detail,
    } = &event.event
    {
        return format!("ability={} detail={detail}", ability.as_str());
    }
    if let Event::Requested { action, by } = &event.event {
        return match action {
            RequestedAction::Signal { signal } => format!("{signal} sent by {by}"),
            RequestedAction::ClearOutput { bytes } => {
                let size = isolation::format_bytes(*bytes);
                format!("{size} of output cleared by {by}")
            }
            RequestedAction::Remove => format!("removed by {by}"),
        };
    }
    if let Event::Interaction { interaction, state } = &event.event {
        return match event.request.get("message").and_then(|it| it.as_str()) {
            Some(message) => format!("{interaction} asks: {message}"),
            None => format!("{interaction} {state}"),
        };
    }
    if let Event::Alert {
        alert,
        state,
        value,
        threshold,
    } = event.event
    {
        let amount = |amount| format_amount(alert, amount);
        return format!(
            "{alert} {state}: {}, threshold {}",
            amount(value),
            amount(threshold)
        );
    }
    if let Event::Context {
        context, reason, ..
    } = &event.event
    {
        let directory = event.request.get("directory").and_then(|it| it.as_str());
        let state = value["state"].as_str().unwrap_or_default();
        return match reason.as_deref().or(directory) {
            Some(more) => format!("{context} {state}: {more}"),
            None => format!("{context} {state}"),
        };
    }
    if let Some(command) = event.request.get("command").and_then(|it| it.as_str()) {
        return command.to_owned();
    }
    let own = [
        "cursor", "at", "id", "uuid", "session", "event", "request", "totals",
    ];
    let fields = value.as_object().into_iter().flatten();
    // Lists and objects are left to --json.
    let is_plain =
        |value: &serde_json::Value| !(value.is_null() || value.is_array() || value.is_object());
    let fields = fields.filter(|(name, value)| !own.contains(&name.as_str()) && is_plain(value));
    let fields = fields.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    });
    fields.collect::<Vec<String>>().join(" ")
}
