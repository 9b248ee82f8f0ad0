//! Reads the first and the last lines that a query matches.

use ostler_journal::{
    ByteQuery, Encoding, Gap, Journal, JournalLine, LinePage, LineQuery, ReadError, StreamSet,
};
use ostler_model::Cursor;

use super::RowSlice;
use super::byte_count::line_bytes;
use crate::{
    LINE_TAIL_BYTES, OutputRow, RedrawFolder, fold_lines, mark_clipped, splice_line_end, to_rows,
};

/// The most lines read from the front: more than a reply can show.
const FRONT_LINES: u64 = 20_000;
/// The most bytes read from the front.
const FRONT_BYTES: u64 = 256 * 1024;
/// The most bytes read from the front where redraws leave little of them.
const REDRAWN_BYTES: u64 = 16 * 1024 * 1024;
/// Lines read from the back at first; four times as many on each retry.
const BACK_LINES: u64 = 256;
/// The most lines read from the back.
const BACK_LINES_LIMIT: u64 = 16_384;
/// Bytes from the back that suffice for any reply.
const BACK_BYTES: usize = 256 * 1024;
/// The most bytes of one line read from the back.
const BACK_LINE_BYTES: u64 = 4 * 1024;
/// The most lines whose missing end is read; others only note that it is missing.
const SPLICES: usize = 64;

/// The first lines.
pub(super) struct HeadRows {
    pub(super) rows: Vec<OutputRow>,
    /// The offset of the first line.
    pub(super) first: Option<u64>,
    /// The last line.
    pub(super) last: Option<JournalLine>,
    /// The number of lines.
    pub(super) lines: u64,
    /// Their size in bytes.
    pub(super) bytes: u64,
    /// Matches after them, where a pattern was given.
    pub(super) omitted_lines: u64,
    /// The position to continue from.
    pub(super) next: Cursor,
    /// Whether there is more.
    pub(super) more: bool,
    pub(super) gap: Option<Gap>,
    pub(super) damaged: Option<u64>,
}

impl HeadRows {
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
        Self::collect(journal, &query, encoding, 0)
    }

    /// As many pages as suffice for any reply.
    pub(super) fn read_pages(
        journal: &Journal,
        query: &LineQuery,
        encoding: Option<Encoding>,
    ) -> Result<Self, ReadError> {
        let query = LineQuery {
            max_lines: FRONT_LINES,
            max_bytes: FRONT_BYTES,
            count_omitted: needs_line_count(query),
            ..query.clone()
        };
        let byte_limit = if needs_line_count(&query) {
            0
        } else {
            REDRAWN_BYTES
        };
        Self::collect(journal, &query, encoding, byte_limit)
    }

    fn collect(
        journal: &Journal,
        query: &LineQuery,
        encoding: Option<Encoding>,
        byte_limit: u64,
    ) -> Result<Self, ReadError> {
        let mut page = journal.lines(query)?;
        let first = page.lines.first().map(|line| line.offset);
        let gap = page.gap;
        let mut folder = RedrawFolder::default();
        let (mut bytes, mut lines) = (0, 0);
        loop {
            fold_page(journal, &page, query, encoding, &mut folder)?;
            bytes += page.lines.iter().map(line_bytes).sum::<u64>();
            lines += page.lines.len() as u64;
            let redrawn = (folder.len() as u64) * 2 < lines;
            if !page.more || !redrawn || bytes >= byte_limit {
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
            rows: folder.finish(),
            first,
            lines,
            bytes,
            omitted_lines: page.omitted_lines,
            next: page.next,
            more: page.more,
            gap,
            damaged: page.damaged,
            last: page.lines.pop(),
        })
    }

    /// The slice, where this is all.
    pub(super) fn into_slice(self) -> RowSlice {
        RowSlice {
            front: self.rows,
            next: self.next,
            gap: self.gap,
            damaged: self.damaged,
            ..RowSlice::default()
        }
    }
}

/// Whether skipped lines must be counted one by one; otherwise their numbers suffice.
pub(super) const fn needs_line_count(query: &LineQuery) -> bool {
    query.grep.is_some() || query.head.is_some()
}

/// The last lines from `from` on, enough for any reply.
pub(super) fn read_tail(
    journal: &Journal,
    query: &LineQuery,
    from: Cursor,
) -> Result<LinePage, ReadError> {
    let mut line_limit = BACK_LINES;
    loop {
        let page = journal.lines(&LineQuery {
            from: Some(from),
            tail: Some(line_limit),
            max_lines: line_limit,
            max_bytes: line_limit * BACK_LINE_BYTES,
            max_line_bytes: BACK_LINE_BYTES.min(query.max_line_bytes),
            count_omitted: false,
            ..query.clone()
        })?;
        let bytes: usize = page.lines.iter().map(|line| line.bytes.len()).sum();
        let is_complete = (page.lines.len() as u64) < line_limit;
        if is_complete || bytes >= BACK_BYTES || line_limit >= BACK_LINES_LIMIT {
            return Ok(page);
        }
        line_limit *= 4;
    }
}

/// The rows of a page.
pub(super) fn page_rows(
    journal: &Journal,
    page: &LinePage,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<Vec<OutputRow>, ReadError> {
    let mut folder = RedrawFolder::default();
    fold_page(journal, page, query, encoding, &mut folder)?;
    Ok(folder.finish())
}

/// The page's rows, with the ends of lines too long to read restored. Lines selected by a pattern
/// do not redraw each other.
fn fold_page(
    journal: &Journal,
    page: &LinePage,
    query: &LineQuery,
    encoding: Option<Encoding>,
    folder: &mut RedrawFolder,
) -> Result<(), ReadError> {
    if query.grep.is_some() {
        let rows = to_rows(&page.lines, encoding, query.unfinished);
        rows.into_iter().for_each(|row| folder.push_whole_line(row));
    } else {
        fold_lines(folder, &page.lines, encoding, query.unfinished);
    }
    let clipped = page.lines.iter().enumerate();
    let clipped = clipped.filter(|(_, line)| line.clipped > 0);
    for (count, (index, line)) in clipped.enumerate() {
        if query.around_match {
            if let Some(row) = folder.row_at_offset(line.offset).filter(|row| !row.binary) {
                mark_clipped(row, line);
            }
            continue;
        }
        let end = if count < SPLICES {
            end_of_line(journal, page, index)?
        } else {
            Vec::new()
        };
        if let Some(row) = folder.row_at_offset(line.offset).filter(|row| !row.binary) {
            splice_line_end(row, &end);
        }
    }
    Ok(())
}

/// The last bytes of a line of which only the beginning was returned.
fn end_of_line(journal: &Journal, page: &LinePage, index: usize) -> Result<Vec<u8>, ReadError> {
    let line = &page.lines[index];
    let later_lines = page.lines[index + 1..].iter();
    let next = later_lines
        .filter(|next| next.stream == line.stream)
        .map(|next| next.offset);
    let end = next.min().unwrap_or(page.next.offset);
    let fetched_end = line.offset + line.bytes.len() as u64;
    let offset = end.saturating_sub(LINE_TAIL_BYTES).max(fetched_end);
    let page = journal.read(&ByteQuery {
        until: Some(end),
        streams: StreamSet::only(line.stream),
        max_bytes: LINE_TAIL_BYTES,
        joined: true,
        ..ByteQuery::starting_at(Cursor { offset, event: 0 })
    })?;
    let mut bytes: Vec<u8> = page.chunks.into_iter().flat_map(|c| c.bytes).collect();
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    let start = bytes.iter().rposition(|&byte| byte == b'\n');
    Ok(bytes.split_off(start.map_or(0, |at| at + 1)))
}
