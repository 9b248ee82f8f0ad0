//! From a journal to rows: the beginning and the end of what a query matches, what failed
//! between them, and what lies hidden, without reading all of it.

mod byte_count;
pub(crate) mod egress_log;
mod head_tail;
mod middle;
pub(crate) mod paging;

use std::collections::HashMap;
use std::io;

use ostler_engine::ExecutionInfo;
use ostler_journal::{
    ByteQuery, Encoding, Gap, GrepMode, Journal, LineQuery, OpenLineMode, ReadError, StreamSet,
    encoding_for_label,
};
use ostler_model::{Cursor, StreamName};

use crate::render::{ExcerptInput, ExcerptPiece, OutputRow};
use head_tail::{HeadRows, read_tail};

/// Journals up to this size are read in place; larger ones on a thread of their own.
const INLINE_BYTES: u64 = 1024 * 1024;
/// Bytes of a long line that are shown around its first match.
const MATCH_LINE_BYTES: u64 = 1_000;
/// Bytes by which `auto` is settled for a pattern.
const SAMPLE_BYTES: u64 = 4 * 1024;

/// The rows a query matched, as far as a reply can use them.
#[derive(Debug, Default)]
pub(crate) struct RowSlice {
    /// Rows from the beginning; all of them where nothing is hidden.
    pub(crate) front: Vec<OutputRow>,
    /// What lies hidden, and rows of it that say what failed. Begins and ends with something
    /// hidden, or is empty.
    pub(crate) middle: Vec<ExcerptPiece>,
    /// The last rows.
    pub(crate) back: Vec<OutputRow>,
    /// How many hidden lines that say what failed look how.
    pub(crate) similar: HashMap<u64, u64>,
    /// Bytes of what is hidden in which nothing was looked for.
    pub(crate) unsearched: u64,
    /// Where to go on after the last row.
    pub(crate) next: Cursor,
    /// Output that is gone before the first row.
    pub(crate) gap: Option<Gap>,
    /// Where the files are damaged.
    pub(crate) damaged: Option<u64>,
}

impl RowSlice {
    /// Whether lines were not fetched.
    pub(crate) const fn is_partial(&self) -> bool {
        !self.middle.is_empty()
    }

    /// Whether some of it is no text.
    pub(crate) fn has_binary(&self) -> bool {
        let middle = self.middle.iter().filter_map(ExcerptPiece::row);
        let mut rows = self.front.iter().chain(middle).chain(&self.back);
        rows.any(|row| row.binary)
    }

    /// Lines of the command that redraws overwrote.
    pub(crate) fn overwritten_lines(&self) -> u64 {
        let middle = self.middle.iter().filter_map(ExcerptPiece::row);
        let rows = self.front.iter().chain(middle).chain(&self.back);
        rows.map(|row| row.lines.saturating_sub(row.repeats)).sum()
    }

    /// From the first row to the last one, where there are rows.
    pub(crate) fn offset_range(&self) -> Option<(u64, u64)> {
        let first = self.front.first()?;
        let last = self.back.last().or(self.front.last())?;
        Some((first.offset, last.offset))
    }

    /// What an excerpt is made of.
    pub(crate) fn into_excerpt_input(self) -> ExcerptInput {
        let head = self.front.into_iter().map(ExcerptPiece::Row);
        let tail = self.back.into_iter().map(ExcerptPiece::Row);
        ExcerptInput {
            pieces: head.chain(self.middle).chain(tail).collect(),
            similar: self.similar,
        }
    }

    /// Rows and what is hidden between them, in order.
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

/// Whether a last line without a newline is all there will be of it.
pub(crate) fn unfinished_mode(info: &ExecutionInfo) -> OpenLineMode {
    if info.state.is_finished() {
        OpenLineMode::Final
    } else {
        OpenLineMode::Preview
    }
}

/// The encoding to read an execution's output with; none means UTF-8.
pub(crate) fn encoding(info: &ExecutionInfo) -> Option<Encoding> {
    let label = info.spec.encoding.as_deref()?;
    encoding_for_label(label).ok()
}

/// Reads what `query` matches; large journals on a thread of their own.
pub(crate) async fn read_slice(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LineQuery,
) -> Result<RowSlice, ReadError> {
    let encoding = encoding(info);
    run_read(journal, info, move |journal| {
        read_rows(journal, &query, encoding)
    })
    .await
}

/// Runs `read` here where the journal is small, else on a thread that may block.
pub(crate) async fn run_read<T: Send + 'static>(
    journal: &Journal,
    info: &ExecutionInfo,
    read: impl FnOnce(&Journal) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    let bytes = if info.state.is_finished() {
        info.output_end
    } else {
        journal.end()?
    };
    run_read_of_size(journal, bytes, read).await
}

/// Runs `read` here where it reads at most [`INLINE_BYTES`], else on a thread that may block.
pub(crate) async fn run_read_of_size<T: Send + 'static>(
    journal: &Journal,
    bytes: u64,
    read: impl FnOnce(&Journal) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    if bytes <= INLINE_BYTES {
        return read(journal);
    }
    let journal = journal.clone();
    let result = tokio::task::spawn_blocking(move || read(&journal)).await;
    result.unwrap_or_else(|error| {
        Err(ReadError::Io {
            action: "read",
            file: "output".to_owned(),
            source: io::Error::other(error),
        })
    })
}

fn read_rows(
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
    /// All of it, or all that can be told.
    Merged(RowSlice),
    /// More than is fetched: each stream by itself, so that what is hidden can be counted.
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
    // The last so many lines of all streams are those of each from the first of them on.
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

/// Beginning, end, and what lies between them.
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
    let hidden_middle = middle::read_middle(journal, &query, (&head, &tail), encoding)?;
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

/// The query with the matches of long lines shown, and not their beginnings.
pub(crate) fn focus_on_matches(query: LineQuery) -> LineQuery {
    if query.grep.is_none() || query.grep_mode != GrepMode::Line {
        return query;
    }
    LineQuery {
        around_match: true,
        max_line_bytes: query.max_line_bytes.min(MATCH_LINE_BYTES),
        ..query
    }
}

/// The query with its pattern tried on the text that is shown.
pub(crate) fn with_pattern_encoding(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<LineQuery, ReadError> {
    let mut query = query.clone();
    if let (Some(pattern), Some(encoding)) = (&query.grep, encoding) {
        let sample = journal.read(&ByteQuery {
            max_bytes: SAMPLE_BYTES,
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
#[path = "reading_tests.rs"]
mod tests;
