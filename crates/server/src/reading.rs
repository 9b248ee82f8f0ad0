//! From a journal to rows: the beginning and the end of what a query matches, what failed
//! between them, and what lies hidden, without reading all of it.

mod count;
pub(crate) mod forward;
mod middle;
pub(crate) mod network;
mod pages;

use std::collections::HashMap;
use std::io;

use ostler_engine::Info;
use ostler_journal::{
    ByteQuery, Encoding, Gap, GrepMode, Journal, LineQuery, ReadError, StreamSet, Unfinished,
    encoding_named,
};
use ostler_model::{Cursor, StreamName};

use crate::render::{Material, Piece, Row};
use pages::{Front, back};

/// Journals up to this size are read in place; larger ones on a thread of their own.
const INLINE_BYTES: u64 = 1024 * 1024;
/// Bytes of a long line that are shown around its first match.
const MATCH_LINE_BYTES: u64 = 1_000;
/// Bytes by which `auto` is settled for a pattern.
const SAMPLE_BYTES: u64 = 4 * 1024;

/// The rows a query matched, as far as a reply can use them.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// Rows from the beginning; all of them where nothing is hidden.
    pub(crate) front: Vec<Row>,
    /// What lies hidden, and rows of it that say what failed. Begins and ends with something
    /// hidden, or is empty.
    pub(crate) middle: Vec<Piece>,
    /// The last rows.
    pub(crate) back: Vec<Row>,
    /// How many hidden lines that say what failed look how.
    pub(crate) alike: HashMap<u64, u64>,
    /// Bytes of what is hidden in which nothing was looked for.
    pub(crate) unsearched: u64,
    /// Where to go on after the last row.
    pub(crate) next: Cursor,
    /// Output that is gone before the first row.
    pub(crate) gap: Option<Gap>,
    /// Where the files are damaged.
    pub(crate) damaged: Option<u64>,
}

impl Slice {
    /// Whether lines were not fetched.
    pub(crate) const fn is_partial(&self) -> bool {
        !self.middle.is_empty()
    }

    /// Whether some of it is no text.
    pub(crate) fn has_binary(&self) -> bool {
        let middle = self.middle.iter().filter_map(Piece::row);
        let mut rows = self.front.iter().chain(middle).chain(&self.back);
        rows.any(|row| row.binary)
    }

    /// Lines of the command that redraws overwrote.
    pub(crate) fn overwritten(&self) -> u64 {
        let middle = self.middle.iter().filter_map(Piece::row);
        let rows = self.front.iter().chain(middle).chain(&self.back);
        rows.map(|row| row.lines.saturating_sub(row.repeats)).sum()
    }

    /// From the first row to the last one, where there are rows.
    pub(crate) fn stretch(&self) -> Option<(u64, u64)> {
        let first = self.front.first()?;
        let last = self.back.last().or(self.front.last())?;
        Some((first.offset, last.offset))
    }

    /// What an excerpt is made of.
    pub(crate) fn material(self) -> Material {
        let front = self.front.into_iter().map(Piece::Row);
        let back = self.back.into_iter().map(Piece::Row);
        Material {
            pieces: front.chain(self.middle).chain(back).collect(),
            alike: self.alike,
        }
    }

    /// Rows and what is hidden between them, in order.
    fn of(mut pieces: Vec<Piece>) -> Self {
        let is_hidden = |piece: &Piece| piece.row().is_none();
        let rows = |pieces: Vec<Piece>| -> Vec<Row> {
            let rows = pieces.into_iter().filter_map(|piece| match piece {
                Piece::Row(row) => Some(row),
                Piece::Hidden(_) => None,
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
    apart_from(journal, bytes, work).await
}

/// Runs `work` here where it reads at most [`INLINE_BYTES`], else on a thread that may block.
pub(crate) async fn apart_from<T: Send + 'static>(
    journal: &Journal,
    bytes: u64,
    work: impl FnOnce(&Journal) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
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
    Ok(match lanes(journal, query, encoding)? {
        Lanes::Whole(slice) => slice,
        Lanes::Each(lanes) => merged(lanes),
    })
}

/// What a query matched.
enum Lanes {
    /// All of it, or all that can be told.
    Whole(Slice),
    /// More than is fetched: each stream by itself, so that what is hidden can be counted.
    Each(Vec<Slice>),
}

fn lanes(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
) -> Result<Lanes, ReadError> {
    let query = focused(on_text(journal, query, encoding)?);
    let asked: Vec<StreamName> = query.streams.iter().collect();
    if asked.len() == 1 {
        let slice = one(journal, query, encoding)?;
        return Ok(Lanes::Each(vec![slice]));
    }
    if query.head.is_some() {
        return Ok(Lanes::Whole(one(journal, query, encoding)?));
    }
    let first = Front::one_page(journal, &query, encoding)?;
    if !first.more {
        return Ok(Lanes::Whole(first.into_slice()));
    }
    // The last so many lines of all streams are those of each from the first of them on.
    let from = match query.tail {
        Some(_) => first.first.map(|offset| Cursor { offset, event: 0 }),
        None => query.from,
    };
    let mut lanes = Vec::new();
    for stream in asked {
        let query = LineQuery {
            streams: StreamSet::only(stream),
            from,
            tail: None,
            ..query.clone()
        };
        lanes.push(one(journal, query, encoding)?);
    }
    Ok(Lanes::Each(lanes))
}

/// Beginning, end, and what lies between them.
fn one(
    journal: &Journal,
    query: LineQuery,
    encoding: Option<Encoding>,
) -> Result<Slice, ReadError> {
    let front = Front::read(journal, &query, encoding)?;
    if !front.more {
        return Ok(front.into_slice());
    }
    let query = LineQuery {
        head: query.head.map(|head| head.saturating_sub(front.lines)),
        ..query
    };
    let back = back(journal, &query, front.next)?;
    let between = middle::between(journal, &query, (&front, &back), encoding)?;
    let mut pieces: Vec<Piece> = front.rows.into_iter().map(Piece::Row).collect();
    pieces.extend(between.pieces);
    let rows = pages::text(journal, &back, &query, encoding)?;
    pieces.extend(rows.into_iter().map(Piece::Row));
    Ok(Slice {
        alike: between.alike,
        unsearched: between.unsearched,
        next: back.next,
        gap: front.gap,
        damaged: back.damaged,
        ..Slice::of(pieces)
    })
}

/// Several streams as they came.
fn merged(slices: Vec<Slice>) -> Slice {
    let mut all = Slice::default();
    let mut pieces = Vec::new();
    for mut slice in slices {
        for (shape, count) in std::mem::take(&mut slice.alike) {
            *all.alike.entry(shape).or_default() += count;
        }
        all.unsearched += slice.unsearched;
        all.next = all.next.max(slice.next);
        all.gap = all.gap.or(slice.gap);
        all.damaged = all.damaged.or(slice.damaged);
        pieces.append(&mut slice.material().pieces);
    }
    pieces.sort_by_key(|piece| match piece {
        Piece::Row(row) => row.offset,
        Piece::Hidden(hidden) => hidden.offset,
    });
    let Slice {
        front,
        middle,
        back,
        ..
    } = Slice::of(pieces);
    Slice {
        front,
        middle,
        back,
        ..all
    }
}

/// The query with the matches of long lines shown, and not their beginnings.
pub(crate) fn focused(query: LineQuery) -> LineQuery {
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

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
