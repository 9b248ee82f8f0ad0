//! Reads rows from a journal: the beginning and the end of the matching lines, failure lines
//! between them, and the counts of hidden lines, without reading all of it.

mod byte_count;
mod head_tail;
mod middle;
mod paging;

use std::collections::HashMap;

use ostler_journal::{
    ByteQuery, Encoding, Gap, GrepMode, Journal, LineQuery, ReadError, StreamSet,
};
use ostler_model::{Cursor, StreamName};

use crate::{ExcerptInput, ExcerptPiece, OutputRow};
use head_tail::{HeadRows, read_tail};

pub use paging::{TextPage, read_page};

/// Bytes of a long line that are shown around its first match.
const MATCH_LINE_BYTES: u64 = 1_000;
/// Bytes by which the encoding `auto` is decided for a pattern.
const SAMPLE_BYTES: u64 = 4 * 1024;

/// The rows a query matched, as far as a reply can use them.
#[derive(Debug, Default)]
pub struct RowSlice {
    /// Rows from the beginning; all of them where nothing is hidden.
    pub front: Vec<OutputRow>,
    /// Hidden ranges between `front` and `back`, and failure lines among them. Begins and ends with
    /// a hidden range, or is empty.
    pub middle: Vec<ExcerptPiece>,
    /// The last rows.
    pub back: Vec<OutputRow>,
    /// The number of hidden failure lines by shape
    /// ([`line_shape`](crate::failure_lines::line_shape)).
    pub similar: HashMap<u64, u64>,
    /// Hidden bytes that were not searched for failures.
    pub unsearched: u64,
    /// The position after the last row.
    pub next: Cursor,
    /// Output that is gone before the first row.
    pub gap: Option<Gap>,
    /// The offset from which on the files are damaged.
    pub damaged: Option<u64>,
}

impl RowSlice {
    /// Whether lines were not fetched.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        !self.middle.is_empty()
    }

    /// Whether a row represents binary data.
    #[must_use]
    pub fn has_binary(&self) -> bool {
        let middle = self.middle.iter().filter_map(ExcerptPiece::row);
        let mut rows = self.front.iter().chain(middle).chain(&self.back);
        rows.any(|row| row.binary)
    }

    /// Lines of the command that redraws overwrote.
    #[must_use]
    pub fn overwritten_lines(&self) -> u64 {
        let middle = self.middle.iter().filter_map(ExcerptPiece::row);
        let rows = self.front.iter().chain(middle).chain(&self.back);
        rows.map(|row| row.lines.saturating_sub(row.repeats)).sum()
    }

    /// The offsets of the first and the last row, where there are rows.
    #[must_use]
    pub fn offset_range(&self) -> Option<(u64, u64)> {
        let first = self.front.first()?;
        let last = self.back.last().or(self.front.last())?;
        Some((first.offset, last.offset))
    }

    /// Everything in order, as [`excerpt()`](crate::excerpt()) takes it.
    #[must_use]
    pub fn into_excerpt_input(self) -> ExcerptInput {
        let head = self.front.into_iter().map(ExcerptPiece::Row);
        let tail = self.back.into_iter().map(ExcerptPiece::Row);
        ExcerptInput {
            pieces: head.chain(self.middle).chain(tail).collect(),
            similar: self.similar,
        }
    }

    /// Rows and the hidden ranges between them, in order.
    fn from_pieces(mut pieces: Vec<ExcerptPiece>) -> Self {
        let is_hidden = |piece: &ExcerptPiece| piece.row().is_none();
        let rows = |pieces: Vec<ExcerptPiece>| -> Vec<OutputRow> {
            let rows = pieces.into_iter().filter_map(|piece| match piece {
                ExcerptPiece::Row(row) => Some(row),
                ExcerptPiece::Hidden(_) => None,
            });
            rows.collect()
        };
        let (Some(first), Some(last)) = (
            pieces.iter().position(is_hidden),
            pieces.iter().rposition(is_hidden),
        ) else {
            return Self {
                front: rows(pieces),
                ..Self::default()
            };
        };
        let back = pieces.split_off(last + 1);
        let middle = pieces.split_off(first);
        Self {
            front: rows(pieces),
            middle,
            back: rows(back),
            ..Self::default()
        }
    }
}

/// Reads the matches of `query`: the beginning, the end, and failure lines between them. Blocks;
/// `encoding` is that of the output, by default UTF-8.
///
/// # Errors
/// When the journal cannot be read.
pub fn read_rows(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<RowSlice, ReadError> {
    Ok(match read_streams(journal, query, encoding)? {
        StreamSlices::Merged(slice) => slice,
        StreamSlices::PerStream(lanes) => merge_slices(lanes),
    })
}

/// What a query matched.
enum StreamSlices {
    /// All rows, or all that fit.
    Merged(RowSlice),
    /// More than is read: one slice per stream, so that hidden lines can be counted.
    PerStream(Vec<RowSlice>),
}

fn read_streams(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<StreamSlices, ReadError> {
    let query = focus_on_matches(with_pattern_encoding(journal, query, encoding)?);
    let streams: Vec<StreamName> = query.streams.iter().collect();
    if streams.len() == 1 {
        let slice = read_stream(journal, query, encoding)?;
        return Ok(StreamSlices::PerStream(vec![slice]));
    }
    if query.head.is_some() {
        return Ok(StreamSlices::Merged(read_stream(journal, query, encoding)?));
    }
    let first = HeadRows::one_page(journal, &query, encoding)?;
    if !first.more {
        return Ok(StreamSlices::Merged(first.into_slice()));
    }
    // The last lines of all streams are those of each stream from the first of them on.
    let from = match query.tail {
        Some(_) => first.first.map(|offset| Cursor { offset, event: 0 }),
        None => query.from,
    };
    let mut slices = Vec::new();
    for stream in streams {
        let query = LineQuery {
            streams: StreamSet::only(stream),
            from,
            tail: None,
            ..query.clone()
        };
        slices.push(read_stream(journal, query, encoding)?);
    }
    Ok(StreamSlices::PerStream(slices))
}

/// The beginning, the end, and the range between them.
fn read_stream(
    journal: &Journal,
    query: LineQuery,
    encoding: Option<Encoding>,
) -> Result<RowSlice, ReadError> {
    let head = HeadRows::read_pages(journal, &query, encoding)?;
    if !head.more {
        return Ok(head.into_slice());
    }
    let query = LineQuery {
        head: query.head.map(|lines| lines.saturating_sub(head.lines)),
        ..query
    };
    let tail = read_tail(journal, &query, head.next)?;
    let hidden_middle = middle::read_middle(journal, &query, &head, &tail, encoding)?;
    let mut pieces: Vec<ExcerptPiece> = head.rows.into_iter().map(ExcerptPiece::Row).collect();
    pieces.extend(hidden_middle.pieces);
    let rows = head_tail::page_rows(journal, &tail, &query, encoding)?;
    pieces.extend(rows.into_iter().map(ExcerptPiece::Row));
    Ok(RowSlice {
        similar: hidden_middle.similar,
        unsearched: hidden_middle.unsearched,
        next: tail.next,
        gap: head.gap,
        damaged: tail.damaged,
        ..RowSlice::from_pieces(pieces)
    })
}

/// Several streams as they came.
fn merge_slices(slices: Vec<RowSlice>) -> RowSlice {
    let mut merged = RowSlice::default();
    let mut pieces = Vec::new();
    for mut slice in slices {
        for (shape, count) in std::mem::take(&mut slice.similar) {
            *merged.similar.entry(shape).or_default() += count;
        }
        merged.unsearched += slice.unsearched;
        merged.next = merged.next.max(slice.next);
        merged.gap = merged.gap.or(slice.gap);
        merged.damaged = merged.damaged.or(slice.damaged);
        pieces.append(&mut slice.into_excerpt_input().pieces);
    }
    pieces.sort_by_key(|piece| match piece {
        ExcerptPiece::Row(row) => row.offset,
        ExcerptPiece::Hidden(hidden) => hidden.offset,
    });
    let RowSlice {
        front,
        middle,
        back,
        ..
    } = RowSlice::from_pieces(pieces);
    RowSlice {
        front,
        middle,
        back,
        ..merged
    }
}

/// The query, made to return the text around the match of a long line instead of its beginning.
#[must_use]
pub fn focus_on_matches(query: LineQuery) -> LineQuery {
    if query.grep.is_none() || query.grep_mode != GrepMode::Line {
        return query;
    }
    LineQuery {
        around_match: true,
        max_line_bytes: query.max_line_bytes.min(MATCH_LINE_BYTES),
        ..query
    }
}

/// The query, its pattern matched against decoded text: `auto` is resolved by the first bytes of
/// the output. Unchanged without a pattern or an encoding.
///
/// # Errors
/// When the first bytes cannot be read.
pub fn with_pattern_encoding(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<LineQuery, ReadError> {
    let mut query = query.clone();
    if let (Some(pattern), Some(encoding)) = (&query.grep, encoding) {
        let sample = journal.read(&ByteQuery {
            max_bytes: SAMPLE_BYTES,
            joined: true,
            ..ByteQuery::starting_at(Cursor::START)
        })?;
        let sample: Vec<u8> = sample
            .chunks
            .into_iter()
            .flat_map(|chunk| chunk.bytes)
            .collect();
        query.grep = Some(pattern.clone().with_encoding(encoding.resolve(&sample)));
    }
    Ok(query)
}

#[cfg(test)]
#[path = "row_reader_tests.rs"]
mod tests;
