//! From a journal to rows: the beginning and the end of what a query matches, and what lies
//! hidden between them, without reading all of it.

use std::io;

use ostler_engine::Info;
use ostler_journal::{
    ByteQuery, Encoding, Gap, Journal, Line, LinePage, LineQuery, ReadError, Stats, StreamSet,
    Unfinished, encoding_named,
};
use ostler_model::{Cursor, StreamName};

use crate::render::{Hidden, Row, TAIL_OF_LINE_BYTES, rows, splice};

/// Journals up to this size are read in place; larger ones on a thread of their own.
const INLINE_BYTES: u64 = 1024 * 1024;
/// Lines fetched from the front: more than a reply can show.
const FRONT_LINES: u64 = 20_000;
/// Bytes fetched from the front.
const FRONT_BYTES: u64 = 256 * 1024;
/// Lines fetched from the back at first; four times as many each time they do not suffice.
const BACK_LINES: u64 = 256;
/// Lines fetched from the back at most.
const BACK_LINES_LIMIT: u64 = 16_384;
/// Bytes from the back that suffice for any reply.
const BACK_BYTES: usize = 256 * 1024;
/// Bytes of one line fetched from the back.
const BACK_LINE_BYTES: u64 = 4 * 1024;
/// Bytes by which `auto` is settled for a pattern.
const SAMPLE_BYTES: u64 = 4 * 1024;
/// Lines whose missing end is fetched; the others only say that it is missing.
const SPLICES: usize = 64;

/// The rows a query matched, as far as a reply can use them.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) front: Vec<Row>,
    pub(crate) hidden: Option<Hidden>,
    pub(crate) back: Vec<Row>,
    /// Where to go on after the last row.
    pub(crate) next: Cursor,
    /// Output that is gone before the first row.
    pub(crate) gap: Option<Gap>,
    /// Where the files are damaged.
    pub(crate) damaged: Option<u64>,
}

impl Slice {
    /// Every row, for what changes them one by one.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.front.iter_mut().chain(&mut self.back)
    }
}

/// Whether a last line without a newline is all there will be of it.
pub(crate) fn last_line(info: &Info) -> Unfinished {
    if info.state.is_finished() {
        Unfinished::Final
    } else {
        Unfinished::Preview
    }
}

/// The encoding to read an execution's output with; none means UTF-8.
pub(crate) fn encoding(info: &Info) -> Option<Encoding> {
    let label = info.spec.encoding.as_deref()?;
    encoding_named(label).ok()
}

/// Reads what `query` matches; large journals on a thread of their own.
pub(crate) async fn slice(
    journal: &Journal,
    info: &Info,
    query: LineQuery,
) -> Result<Slice, ReadError> {
    let encoding = encoding(info);
    apart(journal, info, move |journal| {
        read(journal, &query, encoding)
    })
    .await
}

/// Runs `work` here where the journal is small, else on a thread that may block.
pub(crate) async fn apart<T: Send + 'static>(
    journal: &Journal,
    info: &Info,
    work: impl FnOnce(&Journal) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    let bytes = if info.state.is_finished() {
        info.output_end
    } else {
        journal.end()?
    };
    if bytes <= INLINE_BYTES {
        return work(journal);
    }
    let journal = journal.clone();
    let done = tokio::task::spawn_blocking(move || work(&journal)).await;
    done.unwrap_or_else(|error| {
        Err(ReadError::Io {
            action: "read",
            file: "output".to_owned(),
            source: io::Error::other(error),
        })
    })
}

fn read(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<Slice, ReadError> {
    let (last, query) = (query.unfinished, &on_text(journal, query, encoding)?);
    let front = journal.lines(&LineQuery {
        max_lines: FRONT_LINES,
        max_bytes: FRONT_BYTES,
        count_omitted: query.grep.is_some(),
        ..query.clone()
    })?;
    if !front.more {
        return Ok(Slice {
            front: text(journal, &front, (encoding, last))?,
            hidden: None,
            back: Vec::new(),
            next: front.next,
            gap: front.gap,
            damaged: front.damaged,
        });
    }
    let back = back(journal, query, front.next)?;
    Ok(Slice {
        front: text(journal, &front, (encoding, last))?,
        hidden: Some(hidden(journal, query, &front, &back)?),
        back: text(journal, &back, (encoding, last))?,
        next: back.next,
        gap: front.gap,
        damaged: back.damaged,
    })
}

/// The query with its pattern tried on the text that is shown.
pub(crate) fn on_text(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<LineQuery, ReadError> {
    let mut query = query.clone();
    if let (Some(pattern), Some(encoding)) = (&query.grep, encoding) {
        let sample = journal.read(&ByteQuery {
            max_bytes: SAMPLE_BYTES,
            ..ByteQuery::from(Cursor::START)
        })?;
        let sample: Vec<u8> = sample
            .chunks
            .into_iter()
            .flat_map(|chunk| chunk.bytes)
            .collect();
        query.grep = Some(pattern.clone().over(encoding.resolve(&sample)));
    }
    Ok(query)
}

/// The last lines from `from` on, enough for any reply.
fn back(journal: &Journal, query: &LineQuery, from: Cursor) -> Result<LinePage, ReadError> {
    let mut wanted = BACK_LINES;
    loop {
        let page = journal.lines(&LineQuery {
            from: Some(from),
            tail: Some(wanted),
            max_lines: wanted,
            max_bytes: wanted * BACK_LINE_BYTES,
            max_line_bytes: BACK_LINE_BYTES,
            count_omitted: false,
            ..query.clone()
        })?;
        let bytes: usize = page.lines.iter().map(|line| line.bytes.len()).sum();
        let all = (page.lines.len() as u64) < wanted;
        if all || bytes >= BACK_BYTES || wanted >= BACK_LINES_LIMIT {
            return Ok(page);
        }
        wanted *= 4;
    }
}

/// What lies between two pages. Without a pattern the lines' own numbers tell; with one, the
/// front page counted.
fn hidden(
    journal: &Journal,
    query: &LineQuery,
    front: &LinePage,
    back: &LinePage,
) -> Result<Hidden, ReadError> {
    let lines = if query.grep.is_some() {
        front.omitted_lines.saturating_sub(back.lines.len() as u64)
    } else {
        let mut sum = 0;
        for stream in query.streams.iter() {
            sum += hidden_lines(journal, query, (front, back), stream)?;
        }
        sum
    };
    Ok(Hidden {
        lines,
        bytes: hidden_bytes(journal, query, front, back)?,
        offset: front.next.offset,
    })
}

fn hidden_lines(
    journal: &Journal,
    query: &LineQuery,
    (front, back): (&LinePage, &LinePage),
    stream: StreamName,
) -> Result<u64, ReadError> {
    let of_stream = |line: &&Line| line.stream == stream;
    let edge = |head, tail| {
        let page = journal.lines(&LineQuery {
            from: Some(front.next),
            streams: StreamSet::only(stream),
            head,
            tail,
            max_line_bytes: 1,
            count_omitted: false,
            ..query.clone()
        });
        page.map(|page| page.lines.first().map(|line| line.number))
    };
    let after = match front.lines.iter().rfind(of_stream) {
        Some(line) => Some(line.number + 1),
        None => edge(Some(1), None)?,
    };
    let before = match back.lines.iter().find(of_stream) {
        Some(line) => Some(line.number),
        None => edge(None, Some(1))?.map(|number| number + 1),
    };
    Ok(match (after, before) {
        (Some(after), Some(before)) => before.saturating_sub(after),
        _ => 0,
    })
}

/// Bytes between two pages, where they can be told: offsets count those of all streams, the
/// statistics those of one from its beginning to its end.
fn hidden_bytes(
    journal: &Journal,
    query: &LineQuery,
    front: &LinePage,
    back: &LinePage,
) -> Result<Option<u64>, ReadError> {
    if query.grep.is_some() {
        return Ok(None);
    }
    let stats = journal.stats()?;
    if let (1, Some(last), Some(first)) =
        (used_streams(&stats), front.lines.last(), back.lines.first())
    {
        return Ok(Some(first.offset.saturating_sub(last.offset + size(last))));
    }
    let everything = stats.dropped_bytes == 0 && is_unbounded(query);
    let asked: u64 = query.streams.iter().map(|s| stats.of(s).bytes).sum();
    let shown: u64 = front.lines.iter().chain(&back.lines).map(size).sum();
    Ok(everything.then(|| asked.saturating_sub(shown)))
}

fn used_streams(stats: &Stats) -> usize {
    let used = stats.streams.iter().filter(|stream| stream.bytes > 0);
    used.count()
}

const fn is_unbounded(query: &LineQuery) -> bool {
    query.from.is_none()
        && query.until_cursor.is_none()
        && query.since.is_none()
        && query.until.is_none()
        && query.tail.is_none()
}

fn size(line: &Line) -> u64 {
    line.bytes.len() as u64 + line.clipped + u64::from(line.terminated)
}

/// The page's rows, the ends of lines too long to fetch put back in.
fn text(
    journal: &Journal,
    page: &LinePage,
    (encoding, last): (Option<Encoding>, Unfinished),
) -> Result<Vec<Row>, ReadError> {
    let mut rows = rows(&page.lines, encoding, last);
    let clipped = page.lines.iter().enumerate();
    let clipped = clipped.filter(|(_, line)| line.clipped > 0);
    for (count, (place, line)) in clipped.enumerate() {
        let end = if count < SPLICES {
            end_of_line(journal, page, place)?
        } else {
            Vec::new()
        };
        if let Some(row) = rows.iter_mut().find(|row| row.offset == line.offset) {
            splice(row, &end);
        }
    }
    Ok(rows)
}

/// The last bytes of a line whose beginning alone was returned.
fn end_of_line(journal: &Journal, page: &LinePage, place: usize) -> Result<Vec<u8>, ReadError> {
    let line = &page.lines[place];
    let later = page.lines[place + 1..].iter();
    let next = later
        .filter(|next| next.stream == line.stream)
        .map(|next| next.offset);
    let end = next.min().unwrap_or(page.next.offset);
    let fetched = line.offset + line.bytes.len() as u64;
    let offset = end.saturating_sub(TAIL_OF_LINE_BYTES).max(fetched);
    let found = journal.read(&ByteQuery {
        until: Some(end),
        streams: StreamSet::only(line.stream),
        max_bytes: TAIL_OF_LINE_BYTES,
        ..ByteQuery::from(Cursor { offset, event: 0 })
    })?;
    let mut bytes: Vec<u8> = found.chunks.into_iter().flat_map(|c| c.bytes).collect();
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    let start = bytes.iter().rposition(|&byte| byte == b'\n');
    Ok(bytes.split_off(start.map_or(0, |at| at + 1)))
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
