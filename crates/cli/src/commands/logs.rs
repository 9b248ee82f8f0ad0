//! `ostler logs`.

use clap::{Args, ValueEnum};
use hyper::Method;
use jiff::tz::TimeZone;
use ostler_api::{ExecutionBody, GapBody, LineBody, OutputPageBody};
use ostler_model::{Cursor, StreamName};

use super::output_tail::{OutputPiece, OutputTail, TailEvent, TailQuery};
use super::{ids, refused_hosts, value_parsers};
use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::missing_output::{LossScope, MissingOutput};
use crate::output::{StdoutWriter, Style, format_time, write_stderr_raw};

/// The most lines requested at once.
const PAGE_LINES: u64 = 10_000;

/// What `logs` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogsArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Go on until it ends
    #[arg(short, long, conflicts_with_all = ["until", "head"])]
    pub(crate) follow: bool,
    /// Lines from then on: 10m, 2026-11-21 04:00, RFC 3339, or a cursor
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past_time)]
    since: Option<String>,
    /// Lines up to then
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past_time)]
    until: Option<String>,
    /// Only the last N lines, or all
    #[arg(
        short = 'n',
        long,
        visible_alias = "lines",
        value_name = "N",
        value_parser = parse_tail,
        conflicts_with = "head"
    )]
    tail: Option<TailCount>,
    /// Only the first N lines
    #[arg(long, value_name = "N")]
    head: Option<u64>,
    /// Only lines that match this Perl-style expression
    #[arg(short, long, value_name = "PATTERN")]
    grep: Option<String>,
    /// Whole lines, or only what matches
    #[arg(long, value_enum, default_value = "line", requires = "grep")]
    grep_mode: GrepModeArg,
    /// Only this stream; repeatable
    #[arg(long, value_enum, value_name = "STREAM")]
    stream: Vec<StreamArg>,
    /// Without the time in front of each line
    #[arg(long)]
    no_time: bool,
    /// The bytes as they were printed, standard error on standard error
    #[arg(long, conflicts_with_all = ["since", "until", "tail", "head", "grep", "no_time", "json"])]
    raw: bool,
    /// One JSON document per line
    #[arg(long)]
    json: bool,
}

/// How many of the last lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TailCount {
    All,
    Lines(u64),
}

fn parse_tail(text: &str) -> Result<TailCount, String> {
    match text {
        "all" => Ok(TailCount::All),
        _ => text
            .parse()
            .map(TailCount::Lines)
            .map_err(|_| "write a number of lines, or all".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GrepModeArg {
    /// The whole line
    Line,
    /// Only what matches
    Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StreamArg {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
    /// The terminal
    Pty,
    /// Audited input
    Stdin,
}

impl StreamArg {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Pty => "pty",
            Self::Stdin => "stdin",
        }
    }
}

impl LogsArgs {
    /// The same, for this execution.
    pub(crate) fn of_execution(self, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            ..self
        }
    }

    /// The same, for the output from its start on.
    pub(crate) fn without_start(&self) -> Self {
        Self {
            since: None,
            tail: None,
            ..self.clone()
        }
    }
}

/// Shows the output of an execution.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn run(context: &CliContext, args: LogsArgs) -> CommandResult {
    let client = context.client();
    let style = Style::of_stdout(&context.env);
    block_on(async {
        let id = args.id.clone();
        let result = if args.raw {
            print_raw(client.clone(), &args).await
        } else {
            print_lines(client.clone(), args, style).await
        };
        match result {
            Ok(()) => {
                // The ids of removed executions are shown as they were given.
                if let Ok(info) = ids::info(&client, &id).await {
                    refused_hosts::report(&client, &info).await;
                }
                Ok(0)
            }
            Err(error) => Err(ids::suggest(&client, &id, error).await),
        }
    })
}

async fn print_raw(client: DaemonClient, args: &LogsArgs) -> Result<(), CommandError> {
    let query = TailQuery {
        follow: args.follow,
        streams: stream_query(&args.stream),
        ..TailQuery::default()
    };
    let mut output_tail = OutputTail::new(client, &args.id, query, Cursor::START);
    let mut out = StdoutWriter::new();
    let mut missing_output = MissingOutput::default();
    loop {
        match output_tail.next().await? {
            TailEvent::End(info) => {
                out.flush()?;
                return missing_output.check(LossScope::Retained, &info);
            }
            TailEvent::Output(OutputPiece::Gap(gap)) => {
                out.flush()?;
                missing_output.report_gap(gap);
            }
            TailEvent::Output(OutputPiece::Bytes(StreamName::Stderr, bytes)) => {
                out.flush()?;
                write_stderr_raw(&bytes);
            }
            TailEvent::Output(OutputPiece::Bytes(_, bytes)) => {
                out.write_raw(&bytes)?;
                if args.follow {
                    out.flush()?;
                }
            }
        }
    }
}

fn stream_query(streams: &[StreamArg]) -> String {
    let query = |stream: &StreamArg| format!("&stream={}", stream.as_str());
    streams.iter().map(query).collect()
}

async fn print_lines(
    client: DaemonClient,
    args: LogsArgs,
    style: Style,
) -> Result<(), CommandError> {
    let mut reader = LogReader::new(client.clone(), &args, style);
    reader.read_pages().await?;
    if !args.follow {
        return reader.check_complete().await;
    }
    // The raw stream only signals that there is more; the lines come from the same pages as without
    // --follow, so that both show the same.
    let query = TailQuery {
        follow: true,
        ..TailQuery::default()
    };
    let mut output_tail = OutputTail::new(client, &args.id, query, reader.next);
    loop {
        let event = output_tail.next().await?;
        reader.read_pages().await?;
        if let TailEvent::End(info) = event {
            return reader.finish()?.check(LossScope::Retained, &info);
        }
    }
}

/// Reads page after page.
struct LogReader {
    client: DaemonClient,
    id: String,
    /// The query parameters of every page.
    filter: String,
    /// The query parameters of the first page only.
    start: Option<String>,
    /// The number of lines still to be printed.
    head: Option<u64>,
    follow: bool,
    /// Lines without a newline, at most one of each stream.
    partial_lines: Vec<LineBody>,
    missing_output: MissingOutput,
    /// The gap after the last line.
    trailing_gap: Option<GapBody>,
    /// The end of the newest gap that was skipped because of damage.
    skipped_to: u64,
    next: Cursor,
    printer: LogPrinter,
}

impl LogReader {
    fn new(client: DaemonClient, args: &LogsArgs, style: Style) -> Self {
        Self {
            client,
            id: args.id.clone(),
            filter: filter_query(args),
            start: Some(start_query(args)),
            head: args.head,
            follow: args.follow,
            partial_lines: Vec::new(),
            missing_output: MissingOutput::default(),
            trailing_gap: None,
            skipped_to: 0,
            next: Cursor::START,
            printer: LogPrinter::new(args, style),
        }
    }

    /// Prints everything that is available now.
    async fn read_pages(&mut self) -> Result<(), CommandError> {
        loop {
            let page = self.read_page().await?;
            self.report_gap(page.gap)?;
            let count = page.lines.len() as u64;
            self.head = self.head.map(|head| head.saturating_sub(count));
            for line in page.lines {
                self.push_line(line)?;
            }
            self.next = page.next;
            if page.more && self.head != Some(0) {
                continue;
            }
            let is_new = |gap: &GapBody| self.head != Some(0) && gap.to > self.skipped_to;
            self.trailing_gap = page.gap_after.filter(is_new);
            if self.follow
                && page.damaged_from.is_some()
                && let Some(gap) = self.trailing_gap.take()
            {
                // What a running command prints after damage can be read.
                (self.next.offset, self.skipped_to) = (gap.to, gap.to);
                self.report_gap(Some(gap))?;
            }
            return self.printer.out.flush();
        }
    }

    /// Reports missing lines, after the lines before them were printed.
    fn report_gap(&mut self, gap: Option<GapBody>) -> Result<(), CommandError> {
        if let Some(gap) = gap {
            self.printer.out.flush()?;
            self.missing_output.report_gap(gap);
        }
        Ok(())
    }

    /// Checks that no retained output is missing from the printed output.
    async fn check_complete(mut self) -> Result<(), CommandError> {
        let gap = self.trailing_gap.take();
        self.report_gap(gap)?;
        if self.missing_output.missing_bytes(LossScope::Retained) == 0 {
            return Ok(());
        }
        let path = ids::path(&self.id, "");
        let info: ExecutionBody = self
            .client
            .call(Method::GET, &path, RequestBody::None)
            .await?;
        self.missing_output.check(LossScope::Retained, &info)
    }

    /// Prints a line; an incomplete one is held back while the output is followed.
    fn push_line(&mut self, line: LineBody) -> Result<(), CommandError> {
        let same = |held: &LineBody| (held.stream, held.offset) == (line.stream, line.offset);
        self.partial_lines.retain(|held| !same(held));
        if self.follow && !line.terminated {
            self.partial_lines.push(line);
            return Ok(());
        }
        self.printer.print(&line)
    }

    /// No output follows: prints the rest.
    fn finish(mut self) -> Result<MissingOutput, CommandError> {
        let mut partial_lines = std::mem::take(&mut self.partial_lines);
        partial_lines.sort_by_key(|line| line.offset);
        partial_lines
            .iter()
            .try_for_each(|line| self.printer.print(line))?;
        let gap = self.trailing_gap.take();
        self.report_gap(gap)?;
        self.printer.out.flush()?;
        Ok(self.missing_output)
    }

    async fn read_page(&mut self) -> Result<OutputPageBody, CommandError> {
        let start = match self.start.take() {
            Some(first) => first,
            None => format!("&cursor={}", self.next),
        };
        let head = self
            .head
            .map_or_else(String::new, |head| format!("&head={head}"));
        let rest = format!("/output?limit={PAGE_LINES}{start}{head}{}", self.filter);
        let path = ids::path(&self.id, &rest);
        self.client
            .call(Method::GET, &path, RequestBody::None)
            .await
    }
}

fn filter_query(args: &LogsArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(stream_query(&args.stream));
    if let Some(until) = &args.until {
        query.append_pair("until", until);
    }
    if let Some(grep) = &args.grep {
        query.append_pair("grep", grep);
        let mode = match args.grep_mode {
            GrepModeArg::Line => "line",
            GrepModeArg::Content => "content",
        };
        query.append_pair("grep_mode", mode);
    }
    value_parsers::append_query(&query.finish())
}

fn start_query(args: &LogsArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(since) = &args.since {
        query.append_pair("since", since);
    }
    if let Some(TailCount::Lines(tail)) = args.tail {
        query.append_pair("tail", &tail.to_string());
    }
    value_parsers::append_query(&query.finish())
}

struct LogPrinter {
    out: StdoutWriter,
    style: Style,
    zone: TimeZone,
    time: bool,
    json: bool,
}

impl LogPrinter {
    fn new(args: &LogsArgs, style: Style) -> Self {
        Self {
            out: StdoutWriter::new(),
            style,
            zone: TimeZone::system(),
            time: !args.no_time,
            json: args.json,
        }
    }

    fn print(&mut self, line: &LineBody) -> Result<(), CommandError> {
        if self.json {
            let text = serde_json::to_string(line).map_err(|error| {
                CommandError::new(ostler_model::ErrorCode::Internal, error.to_string())
            })?;
            return self.out.write_json(&text);
        }
        if self.time {
            let time = self.style.dim(&format_time(line.at, &self.zone));
            self.out.write_line_part(time.and(" "))?;
        }
        let warns = line.stream == StreamName::Stderr;
        let colour = self.style.warning().filter(|_| warns);
        let text = line.text.as_bytes();
        self.out.output_line(text, self.style.colours(), colour)?;
        if line.clipped_bytes > 0 {
            let more = format!(" [{} more bytes: --raw shows them]", line.clipped_bytes);
            self.out.write_line_part(self.style.dim(&more))?;
        }
        self.out.end_line()
    }
}
