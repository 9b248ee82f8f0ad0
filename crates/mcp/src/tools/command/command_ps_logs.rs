//! `command_ps_logs`: the output of a process.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_engine::{ExecutionInfo, WaitFor};
use ostler_journal::{GrepMode, Journal, LineQuery, ReadError, StreamSet};
use ostler_model::{Cursor, StreamName};
use ostler_render::{
    ExcerptBudget, ExcerptInput, OutputRow, REPLY_CHARS, TimeOrCursor, TimestampPrefix, excerpt,
    parse_time_or_cursor,
};
use serde_json::json;

use super::command_ps_stop::PID;
use super::start_params::{self, BLOCK_LINES};
use crate::output::{FRAME_CHARS, OutputBlocks, omitted_fields, output_notes, render_whole};
use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::wait;
use ostler_interface::cursor_argument::{SINCE_PARAMETER, check_cursor};
use ostler_interface::error::{ApiError, parse_grep};
use ostler_interface::output_reader::read_page;
use ostler_interface::output_reader::{read_slice, unfinished_mode};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest wait in a call, in seconds; the call itself waits no longer than its maximum.
const FOLLOW_LIMIT_S: i64 = 86_400;
/// The largest `tail`.
const TAIL_LIMIT: i64 = 1_000_000_000;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "command_ps_logs",
    title: "",
    about: "Read the output of a running or ended process.",
    parameters: &[
        PID,
        Parameter::optional(
            "tail",
            ParameterKind::Integer(0, TAIL_LIMIT),
            "Last n lines",
        ),
        Parameter::optional(
            "since",
            ParameterKind::Text,
            "RFC 3339, local time, 10m (ago), or a cursor",
        ),
        Parameter::optional("until", ParameterKind::Text, "As since"),
        Parameter::optional("with_stdout", ParameterKind::Flag, "").with_default_flag(true),
        Parameter::optional("with_stderr", ParameterKind::Flag, "").with_default_flag(false),
        Parameter::optional("add_time_prefix", ParameterKind::Flag, "").with_default_flag(true),
        Parameter::optional(
            "time_prefix_format",
            ParameterKind::Text,
            "strftime; default %Y-%m-%d %H:%M:%S",
        ),
        Parameter::optional(
            "follow_seconds",
            ParameterKind::Integer(0, FOLLOW_LIMIT_S),
            "Collect that long (≤ 45 s) or until it ends; 0: at once",
        )
        .with_default(1),
        BLOCK_LINES.with_description(""),
        Parameter::optional("grep", ParameterKind::Text, "Perl regex"),
        Parameter::optional(
            "grep_mode",
            ParameterKind::Choice(&["line", "content"]),
            "content: only the matches",
        )
        .with_default_text("line"),
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("pid");
    let block_lines = start_params::block_lines(&arguments);
    let zone = TimeZone::system();
    let mut query = parse_query(&mut arguments, &zone)?;
    let prefix = parse_prefix(&mut arguments, zone)?;
    let info = wait_until_ended(call, &id, query.from, &arguments).await?;
    call.mark_notified(&info);
    query.unfinished = unfinished_mode(&info);
    let journal = call.engine.journal(call.caller, &id)?;
    let both =
        query.streams.contains(StreamName::Stdout) && query.streams.contains(StreamName::Stderr);
    let label = LinePrefix {
        prefix,
        shows_stream: both,
    };
    let budget = ExcerptBudget {
        headings: false,
        ..ExcerptBudget::new(REPLY_CHARS - FRAME_CHARS, block_lines)
    };
    let empty_text = empty_text(&query);
    let mut printed = if query.from.is_some() && query.tail.is_none() {
        read_forward(&journal, &info, query, label, budget).await?
    } else {
        let slice = read_slice(&journal, &info, query).await?;
        let notes = output_notes(&info, &journal, &slice)?;
        OutputBlocks::from_slice(slice, notes, |material| {
            let mut material = material.condensed();
            label.apply(material.rows_mut());
            excerpt(material, budget)
        })
    };
    let cut_line = printed.cut_line_note(call, &info);
    printed.notes.extend(cut_line);
    Ok(reply(&info, printed, empty_text))
}

/// The next page from a position on.
async fn read_forward(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LineQuery,
    label: LinePrefix,
    budget: ExcerptBudget,
) -> Result<OutputBlocks, ReadError> {
    let render = move |rows| {
        let mut material = ExcerptInput::from_rows(rows).condensed();
        label.clone().apply(material.rows_mut());
        render_whole(material, budget)
    };
    let page = read_page(journal, info, query, budget.chars, render).await?;
    let notes = output_notes(info, journal, &page.slice)?;
    Ok(OutputBlocks::from_page(page, notes))
}

/// What an answer without output says.
const fn empty_text(query: &LineQuery) -> &'static str {
    match query {
        LineQuery { tail: Some(0), .. } => "[tail is 0: no output is shown]\n",
        LineQuery {
            grep: None,
            since: None,
            until: None,
            from: Some(_),
            ..
        } => "[no newer output]\n",
        _ => "[no output matches]\n",
    }
}

fn reply(info: &ExecutionInfo, printed: OutputBlocks, empty_text: &str) -> ToolReply {
    let footer = render_footer(info, &printed, empty_text);
    let mut fields = json!({
        "id": info.id.short(),
        "status": info.status().process,
        "cursor": printed.next,
    });
    if let Some(omitted) = printed.excerpt.omitted {
        fields["omitted"] = omitted_fields(omitted);
    }
    if printed.lines_left > 0 {
        fields["lines_left"] = printed.lines_left.into();
    }
    let mut blocks = printed.excerpt.blocks;
    blocks.push(footer);
    ToolReply::text(blocks, fields)
}

/// Parses the query; every argument is validated before the call waits.
fn parse_query(arguments: &mut Arguments, zone: &TimeZone) -> Result<LineQuery, ApiError> {
    let mut query = LineQuery {
        streams: parse_streams(arguments)?,
        tail: arguments.count("tail"),
        ..LineQuery::default()
    };
    let now = Timestamp::now();
    if let Some(given) = arguments.text("since") {
        match parse_time_or_cursor("since", &given, now, zone)? {
            TimeOrCursor::Time(at) => query.since = Some(at),
            TimeOrCursor::Cursor(cursor) => query.from = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("until") {
        match parse_time_or_cursor("until", &given, now, zone)? {
            TimeOrCursor::Time(at) => query.until = Some(at),
            TimeOrCursor::Cursor(cursor) => query.until_cursor = Some(cursor),
        }
    }
    if let Some(given) = arguments.text("grep") {
        query.grep = Some(parse_grep(&given)?);
    }
    if arguments.text("grep_mode").as_deref() == Some("content") {
        query.grep_mode = GrepMode::Content;
    }
    Ok(query)
}

fn parse_streams(arguments: &Arguments) -> Result<StreamSet, ApiError> {
    let mut streams = StreamSet::NONE;
    if arguments.flag("with_stdout") {
        streams = streams.with(StreamName::Stdout).with(StreamName::Pty);
    }
    if arguments.flag("with_stderr") {
        streams = streams.with(StreamName::Stderr);
    }
    if streams == StreamSet::NONE {
        return Err(ApiError::value(
            "parameters 'with_stdout' and 'with_stderr' are both false; allowed: at least one true",
        ));
    }
    Ok(streams)
}

/// Parses the format of the time before each line; an invalid one is an error in any case.
fn parse_prefix(
    arguments: &mut Arguments,
    zone: TimeZone,
) -> Result<Option<TimestampPrefix>, ApiError> {
    let format = arguments.text("time_prefix_format");
    let prefix = TimestampPrefix::new("time_prefix_format", format, zone)?;
    Ok(arguments.flag("add_time_prefix").then_some(prefix))
}

/// Waits for the requested time, or until the end.
async fn wait_until_ended(
    call: ToolCall<'_>,
    id: &str,
    from: Option<Cursor>,
    arguments: &Arguments,
) -> Result<ExecutionInfo, ToolInterrupt> {
    let info = call.info(id)?;
    check_cursor(&info, SINCE_PARAMETER, from)?;
    match arguments.count("follow_seconds") {
        Some(follow_s) if follow_s > 0 && !info.state.is_finished() => {
            let follow = Duration::from_secs(follow_s);
            Ok(wait::wait(call, id, &WaitFor::Exit, Some(follow))
                .await?
                .info)
        }
        _ => Ok(info),
    }
}

/// The prefix of each line.
#[derive(Clone)]
struct LinePrefix {
    prefix: Option<TimestampPrefix>,
    /// Whether lines name their stream.
    shows_stream: bool,
}

impl LinePrefix {
    fn apply<'r>(mut self, rows: impl Iterator<Item = &'r mut OutputRow>) {
        for row in rows {
            if self.shows_stream && row.is_stderr() {
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

/// The process status, and how to continue.
fn render_footer(info: &ExecutionInfo, printed: &OutputBlocks, empty_text: &str) -> String {
    let status = info.status().process.as_str();
    let next = printed.next;
    let mut text = match &info.state.ending {
        Some(ending) => format!("[status: {status}, {}]", ending.describe()),
        None => format!("[status: {status}; later output: since=\"{next}\"]"),
    };
    if printed.excerpt.blocks.is_empty() {
        text.insert_str(0, empty_text);
    }
    if printed.excerpt.omitted.is_some() {
        text.push_str("\n[what is omitted: since=\"<its cursor>\", or narrow with grep]");
    }
    if printed.lines_left > 0 {
        let left = printed.lines_left;
        text.push_str(&format!("\n[{left} more lines: since=\"{next}\"]"));
    }
    for note in printed.notes.iter().chain(info.state.degradations()) {
        text.push_str("\nnote: ");
        text.push_str(note);
    }
    text
}
