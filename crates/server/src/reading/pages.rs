//! The first and the last lines of what a query matches.

use ostler_journal::{
    ByteQuery, Encoding, Gap, Journal, Line, LinePage, LineQuery, ReadError, StreamSet,
};
use ostler_model::Cursor;

use super::Slice;
use super::count::size;
use crate::render::{Fold, Row, TAIL_OF_LINE_BYTES, fold, frame, rows, splice};

/// Lines fetched from the front: more than a reply can show.
const FRONT_LINES: u64 = 20_000;
/// Bytes fetched from the front.
const FRONT_BYTES: u64 = 256 * 1024;
/// Bytes fetched from the front where redraws leave little of them.
const REDRAWN_BYTES: u64 = 16 * 1024 * 1024;
/// Lines fetched from the back at first; four times as many each time they do not suffice.
const BACK_LINES: u64 = 256;
/// Lines fetched from the back at most.
const BACK_LINES_LIMIT: u64 = 16_384;
/// Bytes from the back that suffice for any reply.
const BACK_BYTES: usize = 256 * 1024;
/// Bytes of one line fetched from the back.
const BACK_LINE_BYTES: u64 = 4 * 1024;
/// Lines whose missing end is fetched; the others only say that it is missing.
const SPLICES: usize = 64;

/// The first lines.
pub(super) struct Front {
    pub(super) rows: Vec<Row>,
    /// The offset of the first line.
    pub(super) first: Option<u64>,
    /// The last line.
    pub(super) last: Option<Line>,
    /// How many lines.
    pub(super) lines: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Matches beyond, where a pattern was given.
    pub(super) beyond: u64,
    /// Where to go on.
    pub(super) next: Cursor,
    /// Whether there is more.
    pub(super) more: bool,
    pub(super) gap: Option<Gap>,
    pub(super) damaged: Option<u64>,
}

impl Front {
    /// One page, of several streams.
    pub(super) fn one_page(
        journal: &Journal,
        query: &LineQuery,
        encoding: Option<Encoding>,
    ) -> Result<Self, ReadError> {
        let query = LineQuery {
            max_lines: FRONT_LINES,
            max_bytes: FRONT_BYTES,
            count_omitted: false,
            ..query.clone()
        };
        Self::pages(journal, &query, encoding, 0)
    }

    /// As many pages as it takes until there is enough for any reply.
    pub(super) fn read(
        journal: &Journal,
        query: &LineQuery,
        encoding: Option<Encoding>,
    ) -> Result<Self, ReadError> {
        let query = LineQuery {
            max_lines: FRONT_LINES,
            max_bytes: FRONT_BYTES,
            count_omitted: is_counted(query),
            ..query.clone()
        };
        let most = if is_counted(&query) { 0 } else { REDRAWN_BYTES };
        Self::pages(journal, &query, encoding, most)
    }

    fn pages(
        journal: &Journal,
        query: &LineQuery,
        encoding: Option<Encoding>,
        most: u64,
    ) -> Result<Self, ReadError> {
        let mut page = journal.lines(query)?;
        let first = page.lines.first().map(|line| line.offset);
        let gap = page.gap;
        let mut all = Fold::default();
        let (mut bytes, mut lines) = (0, 0);
        loop {
            put(journal, &page, (query, encoding), &mut all)?;
            bytes += page.lines.iter().map(size).sum::<u64>();
            lines += page.lines.len() as u64;
            let redrawn = (all.len() as u64) * 2 < lines;
            if !page.more || !redrawn || bytes >= most {
                break;
            }
            let more = journal.lines(&LineQuery {
                from: Some(page.next),
                ..query.clone()
            })?;
            if more.lines.is_empty() || more.gap.is_some() {
                break;
            }
            page = more;
        }
        Ok(Self {
            rows: all.finish(),
            first,
            lines,
            bytes,
            beyond: page.omitted_lines,
            next: page.next,
            more: page.more,
            gap,
            damaged: page.damaged,
            last: page.lines.pop(),
        })
    }

    /// The slice, where this is all.
    pub(super) fn into_slice(self) -> Slice {
        Slice {
            front: self.rows,
            next: self.next,
            gap: self.gap,
            damaged: self.damaged,
            ..Slice::default()
        }
    }
}

/// Whether lines that are not fetched must be counted one by one; else their numbers tell.
pub(super) const fn is_counted(query: &LineQuery) -> bool {
    query.grep.is_some() || query.head.is_some()
}

/// The last lines from `from` on, enough for any reply.
pub(super) fn back(
    journal: &Journal,
    query: &LineQuery,
    from: Cursor,
) -> Result<LinePage, ReadError> {
    let mut wanted = BACK_LINES;
    loop {
        let page = journal.lines(&LineQuery {
            from: Some(from),
            tail: Some(wanted),
            max_lines: wanted,
            max_bytes: wanted * BACK_LINE_BYTES,
            max_line_bytes: BACK_LINE_BYTES.min(query.max_line_bytes),
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

/// The rows of a page.
pub(super) fn text(
    journal: &Journal,
    page: &LinePage,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<Vec<Row>, ReadError> {
    let mut all = Fold::default();
    put(journal, page, (query, encoding), &mut all)?;
    Ok(all.finish())
}

/// The page's rows, the ends of lines too long to fetch put back in. Lines that a pattern
/// picked out do not draw over each other.
fn put(
    journal: &Journal,
    page: &LinePage,
    (query, encoding): (&LineQuery, Option<Encoding>),
    all: &mut Fold,
) -> Result<(), ReadError> {
    if query.grep.is_some() {
        let rows = rows(&page.lines, encoding, query.unfinished);
        rows.into_iter().for_each(|row| all.whole_line(row));
    } else {
        fold(all, &page.lines, encoding, query.unfinished);
    }
    let clipped = page.lines.iter().enumerate();
    let clipped = clipped.filter(|(_, line)| line.clipped > 0);
    for (count, (place, line)) in clipped.enumerate() {
        if query.around_match {
            if let Some(row) = all.row_at_offset(line.offset).filter(|row| !row.binary) {
                frame(row, line);
            }
            continue;
        }
        let end = if count < SPLICES {
            end_of_line(journal, page, place)?
        } else {
            Vec::new()
        };
        if let Some(row) = all.row_at_offset(line.offset).filter(|row| !row.binary) {
            splice(row, &end);
        }
    }
    Ok(())
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
