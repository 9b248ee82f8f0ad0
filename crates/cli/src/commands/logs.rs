//! `ostler logs`.

use clap::{Args, ValueEnum};
use hyper::Method;
use jiff::tz::TimeZone;
use ostler_model::{Cursor, StreamName};
use ostler_server::wire::{GapBody, InfoBody, LineBody, PageBody};

use super::follow::{Event, Piece, Tail};
use super::{ids, parse, refused};
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::loss::{Missing, Wanted};
use crate::output::{Out, Style, clock, raw_error};
use crate::setup::{Setup, block_on};

/// Lines asked for at once.
const PAGE_LINES: u64 = 10_000;

/// What `logs` takes.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Go on until it ends
    #[arg(short, long, conflicts_with_all = ["until", "head"])]
    follow: bool,
    /// Lines from then on: 10m, 2026-11-21 04:00, RFC 3339, or a cursor
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Lines up to then
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only the last N lines
    #[arg(
        short = 'n',
        long,
        visible_alias = "lines",
        value_name = "N",
        conflicts_with = "head"
    )]
    tail: Option<u64>,
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

/// Shows the output of an execution.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn run(setup: &Setup, args: LogsArgs) -> Outcome {
    let client = setup.client();
    let style = Style::of_stdout(&setup.env);
    block_on(async {
        let id = args.id.clone();
        let shown = if args.raw {
            raw(client.clone(), &args).await
        } else {
            lines(client.clone(), args, style).await
        };
        match shown {
            Ok(()) => {
                // What is not known any more was told as it is.
                if let Ok(info) = ids::info(&client, &id).await {
                    refused::tell(&client, &info).await;
                }
                Ok(0)
            }
            Err(error) => Err(ids::suggest(&client, &id, error).await),
        }
    })
}

async fn raw(client: Client, args: &LogsArgs) -> Result<(), CommandError> {
    let follow = if args.follow { "&follow=true" } else { "" };
    let query = format!("{}{follow}", streams(&args.stream));
    let mut tail = Tail::new(client, &args.id, query, Cursor::START);
    let mut out = Out::new();
    let mut missing = Missing::default();
    loop {
        match tail.next().await? {
            Event::End(info) => {
                out.flush()?;
                return missing.check(Wanted::Kept, &info);
            }
            Event::Output(Piece::Gap(gap)) => {
                out.flush()?;
                missing.tell(gap);
            }
            Event::Output(Piece::Bytes(StreamName::Stderr, bytes)) => {
                out.flush()?;
                raw_error(&bytes);
            }
            Event::Output(Piece::Bytes(_, bytes)) => {
                out.raw(&bytes)?;
                if args.follow {
                    out.flush()?;
                }
            }
        }
    }
}

fn streams(streams: &[StreamArg]) -> String {
    let one = |stream: &StreamArg| format!("&stream={}", stream.as_str());
    streams.iter().map(one).collect()
}

async fn lines(client: Client, args: LogsArgs, style: Style) -> Result<(), CommandError> {
    let mut reader = Reader::new(client.clone(), &args, style);
    reader.pages().await?;
    if !args.follow {
        return reader.whole().await;
    }
    // The raw stream only says that there is more; the lines come from the same pages as
    // without --follow, so that both show the same.
    let mut tail = Tail::new(client, &args.id, "&follow=true".to_owned(), reader.next);
    loop {
        let event = tail.next().await?;
        reader.pages().await?;
        if let Event::End(info) = event {
            return reader.finish()?.check(Wanted::Kept, &info);
        }
    }
}

/// Reads page after page.
struct Reader {
    client: Client,
    id: String,
    /// Conditions of every page.
    filter: String,
    /// Conditions of the first page.
    first: Option<String>,
    /// How many more lines are wanted.
    head: Option<u64>,
    follow: bool,
    /// Lines without an end, at most one of each stream.
    held: Vec<LineBody>,
    missing: Missing,
    /// What is gone behind the last line.
    gap_after: Option<GapBody>,
    next: Cursor,
    printer: Printer,
}

impl Reader {
    fn new(client: Client, args: &LogsArgs, style: Style) -> Self {
        Self {
            client,
            id: args.id.clone(),
            filter: filter(args),
            first: Some(first(args)),
            head: args.head,
            follow: args.follow,
            held: Vec::new(),
            missing: Missing::default(),
            gap_after: None,
            next: Cursor::START,
            printer: Printer::new(args, style),
        }
    }

    /// Prints everything that is there now.
    async fn pages(&mut self) -> Result<(), CommandError> {
        loop {
            let page = self.page().await?;
            self.tell(page.gap)?;
            let count = page.lines.len() as u64;
            self.head = self.head.map(|head| head.saturating_sub(count));
            for line in page.lines {
                self.take(line)?;
            }
            self.next = page.next;
            if !page.more || self.head == Some(0) {
                self.gap_after = page.gap_after.filter(|_| self.head != Some(0));
                return self.printer.out.flush();
            }
        }
    }

    /// Says that lines are missing here; those before them are out by then.
    fn tell(&mut self, gap: Option<GapBody>) -> Result<(), CommandError> {
        if let Some(gap) = gap {
            self.printer.out.flush()?;
            self.missing.tell(gap);
        }
        Ok(())
    }

    /// Whether nothing that was kept is missing in what was printed.
    async fn whole(mut self) -> Result<(), CommandError> {
        let after = self.gap_after.take();
        self.tell(after)?;
        if self.missing.missed(Wanted::Kept) == 0 {
            return Ok(());
        }
        let path = ids::path(&self.id, "");
        let info: InfoBody = self.client.call(Method::GET, &path, Body::None).await?;
        self.missing.check(Wanted::Kept, &info)
    }

    /// Prints a line; one whose rest may still come is held back while it is followed.
    fn take(&mut self, line: LineBody) -> Result<(), CommandError> {
        let same = |held: &LineBody| (held.stream, held.offset) == (line.stream, line.offset);
        self.held.retain(|held| !same(held));
        if self.follow && !line.terminated {
            self.held.push(line);
            return Ok(());
        }
        self.printer.print(&line)
    }

    /// Nothing comes any more: what was held back is whole.
    fn finish(mut self) -> Result<Missing, CommandError> {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|line| line.offset);
        held.iter().try_for_each(|line| self.printer.print(line))?;
        let after = self.gap_after.take();
        self.tell(after)?;
        self.printer.out.flush()?;
        Ok(self.missing)
    }

    async fn page(&mut self) -> Result<PageBody, CommandError> {
        let place = match self.first.take() {
            Some(first) => first,
            None => format!("&cursor={}", self.next),
        };
        let head = self
            .head
            .map_or_else(String::new, |head| format!("&head={head}"));
        let rest = format!("/output?limit={PAGE_LINES}{place}{head}{}", self.filter);
        let path = ids::path(&self.id, &rest);
        self.client.call(Method::GET, &path, Body::None).await
    }
}

fn filter(args: &LogsArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(streams(&args.stream));
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
    parse::joined(&query.finish())
}

fn first(args: &LogsArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(since) = &args.since {
        query.append_pair("since", since);
    }
    if let Some(tail) = args.tail {
        query.append_pair("tail", &tail.to_string());
    }
    parse::joined(&query.finish())
}

/// Prints lines.
struct Printer {
    out: Out,
    style: Style,
    zone: TimeZone,
    time: bool,
    json: bool,
}

impl Printer {
    fn new(args: &LogsArgs, style: Style) -> Self {
        Self {
            out: Out::new(),
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
            return self.out.document(&text);
        }
        if self.time {
            let time = self.style.dim(&clock(line.at, &self.zone));
            self.out.part(time.and(" "))?;
        }
        let warns = line.stream == StreamName::Stderr;
        let colour = self.style.warning().filter(|_| warns);
        let text = line.text.as_bytes();
        self.out.printed(text, self.style.colours(), colour)?;
        if line.clipped_bytes > 0 {
            let more = format!(" [{} more bytes: --raw shows them]", line.clipped_bytes);
            self.out.part(self.style.dim(&more))?;
        }
        self.out.end()
    }
}
