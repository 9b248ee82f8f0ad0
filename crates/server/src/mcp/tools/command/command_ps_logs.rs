//! `command_ps_logs`: what a process printed.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_engine::{Info, WaitFor};
use ostler_journal::{GrepMode, Journal, LineQuery, Pattern, ReadError, StreamSet};
use ostler_model::StreamName;
use serde_json::json;

use super::command_ps_stop::PID;
use super::starting::{self, BLOCK_LINES};
use crate::error::{Failure, bad_pattern};
use crate::mcp::context::Call;
use crate::mcp::output::{FRAME_CHARS, Printed, notes, omitted_fields, whole};
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::waiting;
use crate::params::{Arguments, Kind, Parameter};
use crate::reading::forward::page;
use crate::reading::{last_line, slice};
use crate::render::{Budget, Material, Moment, Prefix, REPLY_CHARS, Row, excerpt, moment};

/// The longest wait that can be asked for, in seconds; a call itself collects no longer than
/// the client's patience.
const FOLLOW_LIMIT_S: i64 = 86_400;
/// The most lines from the end that can be asked for.
const TAIL_LIMIT: i64 = 1_000_000_000;

pub(super) const DEFINITION: Definition = Definition {
    name: "command_ps_logs",
    title: "",
    about: "Read the output of a running or ended process.",
    parameters: &[
        PID,
        Parameter::optional("tail", Kind::Integer(0, TAIL_LIMIT), "Last n lines"),
        Parameter::optional(
            "since",
            Kind::Text,
            "RFC 3339, local time, 10m (ago), or a cursor",
        ),
        Parameter::optional("until", Kind::Text, "As since"),
        Parameter::optional("with_stdout", Kind::Flag, "").or_flag(true),
        Parameter::optional("with_stderr", Kind::Flag, "").or_flag(false),
        Parameter::optional("add_time_prefix", Kind::Flag, "").or_flag(true),
        Parameter::optional(
            "time_prefix_format",
            Kind::Text,
            "strftime; default %Y-%m-%d %H:%M:%S",
        ),
        Parameter::optional(
            "follow_seconds",
            Kind::Integer(0, FOLLOW_LIMIT_S),
            "Collect that long (≤ 45 s) or until it ends; 0: at once",
        )
        .or(1),
        BLOCK_LINES.told(""),
        Parameter::optional("grep", Kind::Text, "Perl regex"),
        Parameter::optional(
            "grep_mode",
            Kind::Choice(&["line", "content"]),
            "content: only the matches",
        )
        .or_text("line"),
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("pid");
    let block_lines = starting::block_lines(&arguments);
    let zone = TimeZone::system();
    let mut query = query(&mut arguments, &zone)?;
    let prefix = prefix(&mut arguments, zone)?;
    let info = settled(call, &id, &arguments).await?;
    call.told(&info);
    query.unfinished = last_line(&info);
    let journal = call.engine.journal(call.caller, &id)?;
    let both =
        query.streams.contains(StreamName::Stdout) && query.streams.contains(StreamName::Stderr);
    let label = Label { prefix, both };
    let budget = Budget {
        headings: false,
        ..Budget::new(REPLY_CHARS - FRAME_CHARS, block_lines)
    };
    let printed = if query.from.is_some() && query.tail.is_none() {
        onward(&journal, &info, query, (label, budget)).await?
    } else {
        let slice = slice(&journal, &info, query).await?;
        let notes = notes(&info, &journal, &slice)?;
        Printed::of_slice(slice, notes, |material| {
            let mut material = material.condensed();
            label.put_on(material.rows_mut());
            excerpt(material, budget)
        })
    };
    Ok(reply(&info, printed))
}

/// The next page from a position on.
async fn onward(
    journal: &Journal,
    info: &Info,
    query: LineQuery,
    (label, budget): (Label, Budget),
) -> Result<Printed, ReadError> {
    let show = move |rows| {
        let mut material = Material::whole(rows).condensed();
        label.clone().put_on(material.rows_mut());
        whole(material, budget)
    };
    let page = page(journal, info, query, budget.chars, show).await?;
    let notes = notes(info, journal, &page.rows)?;
    Ok(Printed::of_page(page, notes))
}

fn reply(info: &Info, printed: Printed) -> Reply {
    let footer = footer(info, &printed);
    let mut fields = json!({
        "id": info.id.short(),
        "status": info.status().process,
        "cursor": printed.next,
    });
    if let Some(omitted) = printed.excerpt.omitted {
        fields["omitted"] = omitted_fields(omitted);
    }
    if printed.left > 0 {
        fields["lines_left"] = printed.left.into();
    }
    let mut blocks = printed.excerpt.blocks;
    blocks.push(footer);
    Reply::text(blocks, fields)
}

/// What to look for; everything is checked before anything is waited for.
fn query(arguments: &mut Arguments, zone: &TimeZone) -> Result<LineQuery, Failure> {
    let mut query = LineQuery {
        streams: streams(arguments)?,
        tail: arguments.count("tail"),
        ..LineQuery::default()
    };
    let now = Timestamp::now();
    if let Some(given) = arguments.text("since") {
        match moment("since", &given, now, zone)? {
            Moment::At(at) => query.since = Some(at),
            Moment::Position(cursor) => query.from = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("until") {
        match moment("until", &given, now, zone)? {
            Moment::At(at) => query.until = Some(at),
            Moment::Position(cursor) => query.until_cursor = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("grep") {
        let pattern = Pattern::new(&given).map_err(|error| bad_pattern("grep", &given, &error))?;
        query.grep = Some(pattern);
    }
    if arguments.text("grep_mode").as_deref() == Some("content") {
        query.grep_mode = GrepMode::Content;
    }
    Ok(query)
}

fn streams(arguments: &Arguments) -> Result<StreamSet, Failure> {
    let mut streams = StreamSet::NONE;
    if arguments.flag("with_stdout") {
        streams = streams.with(StreamName::Stdout).with(StreamName::Pty);
    }
    if arguments.flag("with_stderr") {
        streams = streams.with(StreamName::Stderr);
    }
    if streams == StreamSet::NONE {
        return Err(Failure::value(
            "parameters 'with_stdout' and 'with_stderr' are both false; allowed: at least one true",
        ));
    }
    Ok(streams)
}

/// The times before lines, unless they are not wanted; a wrong format is told in any case.
fn prefix(arguments: &mut Arguments, zone: TimeZone) -> Result<Option<Prefix>, Failure> {
    let format = arguments.text("time_prefix_format");
    let prefix = Prefix::new("time_prefix_format", format, zone)?;
    Ok(arguments.flag("add_time_prefix").then_some(prefix))
}

/// Waits as long as was asked for, at most until the end.
async fn settled(call: Call<'_>, id: &str, arguments: &Arguments) -> Result<Info, Interrupted> {
    let info = call.info(id)?;
    match arguments.count("follow_seconds") {
        Some(follow_s) if follow_s > 0 && !info.state.is_finished() => {
            let follow = Duration::from_secs(follow_s);
            Ok(waiting::wait(call, id, &WaitFor::Exit, Some(follow))
                .await?
                .info)
        }
        _ => Ok(info),
    }
}

/// What stands before each line.
#[derive(Clone)]
struct Label {
    prefix: Option<Prefix>,
    /// Whether lines of both streams are told apart.
    both: bool,
}

impl Label {
    fn put_on<'r>(mut self, rows: impl Iterator<Item = &'r mut Row>) {
        for row in rows {
            if self.both && row.is_stderr() {
                row.text.insert_str(0, "[stderr] ");
            }
            if let Some(prefix) = &mut self.prefix {
                let time = prefix.at(row.at);
                row.text.reserve(time.len() + 1);
                row.text.insert(0, ' ');
                row.text.insert_str(0, time);
            }
        }
    }
}

/// How it stands, and how to go on.
fn footer(info: &Info, printed: &Printed) -> String {
    let status = info.status().process.as_str();
    let next = printed.next;
    let mut text = match &info.state.ending {
        Some(ending) => format!("[status: {status}, {}]", ending.describe()),
        None => format!("[status: {status}; later output: since=\"{next}\"]"),
    };
    if printed.excerpt.blocks.is_empty() {
        text.insert_str(0, "[no output matches]\n");
    }
    if printed.excerpt.omitted.is_some() {
        text.push_str("\n[what is omitted: since=\"<its cursor>\", or narrow with grep]");
    }
    if printed.left > 0 {
        let left = printed.left;
        text.push_str(&format!("\n[{left} more lines: since=\"{next}\"]"));
    }
    for note in printed.notes.iter().chain(&info.state.degraded) {
        text.push_str("\nnote: ");
        text.push_str(note);
    }
    text
}
