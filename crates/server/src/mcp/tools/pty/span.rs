//! A stretch of a terminal's output as plain text: exactly the bytes between two offsets, as
//! lines, without control sequences, redraws folded, within a budget (F3).

use ostler_engine::Info;
use ostler_journal::query::Line;
use ostler_journal::{ByteQuery, Gap, Journal, LineQuery, ReadError, StreamSet, Unfinished};
use ostler_model::{Cursor, StreamName, Timestamp};
use serde_json::Value;

use super::paint;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::output::{self, omitted_fields};
use crate::reading::{Slice, apart, apart_from, encoding, slice};
use crate::render::{Budget, Fold, Material, Row, clean, excerpt, fold};

/// A stretch up to this long is read as a whole; of a longer one, its beginning, its end and
/// what failed between them.
const WHOLE_BYTES: u64 = 256 * 1024;
/// Bytes at either end of a longer one in which the end of a line is looked for.
const EDGE_BYTES: u64 = 16 * 1024;

/// A stretch, as it is told.
#[derive(Debug, Default)]
pub(super) struct Span {
    pub(super) text: String,
    /// Where it ends: what to go on from.
    pub(super) next: u64,
    /// Things to be told about it.
    pub(super) notes: Vec<String>,
    /// What was left out, for programs.
    pub(super) omitted: Option<Value>,
    /// Whether it draws a screen rather than printing lines.
    pub(super) paints: bool,
}

/// Where a stretch begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether more may come: what is incomplete at its end is then left for later.
    pub(super) grows: bool,
}

/// What was read of it.
#[derive(Debug, Default)]
struct Read {
    material: Material,
    next: u64,
    notes: Vec<String>,
    paints: bool,
}

/// Reads a stretch.
pub(super) async fn read(
    call: Call<'_>,
    info: &Info,
    range: Range,
    chars: usize,
) -> Result<Span, Failure> {
    if range.from >= range.to {
        return Ok(Span {
            next: range.from,
            ..Span::default()
        });
    }
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let read = if range.to - range.from <= WHOLE_BYTES {
        whole(&journal, info, range).await?
    } else {
        parts(&journal, info, range).await?
    };
    let budget = Budget::new(chars, usize::MAX);
    let shown = excerpt(read.material, budget);
    Ok(Span {
        text: by_offset(&shown.blocks.join("\n")),
        next: read.next,
        notes: read.notes,
        omitted: shown.omitted.map(omitted_fields),
        paints: read.paints,
    })
}

/// How many lines end in a stretch; none where it is too long to be on a screen, or cannot be
/// read.
pub(super) async fn line_ends(
    call: Call<'_>,
    info: &Info,
    (from, to): (u64, u64),
) -> Option<usize> {
    let text = bytes(call, info, (from, to)).await?;
    Some(text.iter().filter(|byte| **byte == b'\n').count())
}

/// Whether a line that says something ends in a stretch.
pub(super) async fn has_line(call: Call<'_>, info: &Info, stretch: (u64, u64)) -> bool {
    let Some(text) = bytes(call, info, stretch).await else {
        return true;
    };
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let says = |line: &&[u8]| !clean(&String::from_utf8_lossy(line)).trim().is_empty();
    lines.iter().any(says)
}

/// A short stretch as it came.
async fn bytes(call: Call<'_>, info: &Info, (from, to): (u64, u64)) -> Option<Vec<u8>> {
    if to.saturating_sub(from) > EDGE_BYTES {
        return None;
    }
    let journal = call.engine.journal(call.caller, &info.id.short()).ok()?;
    let length = to.saturating_sub(from);
    let read = apart_from(&journal, length, move |journal| stretch(journal, from, to)).await;
    read.ok().map(|(bytes, ..)| bytes)
}

/// All of it, at once.
async fn whole(journal: &Journal, info: &Info, range: Range) -> Result<Read, ReadError> {
    let encoding = encoding(info);
    let length = range.to.saturating_sub(range.from);
    let read = apart_from(journal, length, move |journal| {
        let (mut bytes, first, gap) = stretch(journal, range.from, range.to)?;
        if range.grows {
            let kept = bytes.len() - paint::incomplete(&bytes);
            bytes.truncate(kept);
        }
        let mut rows = Fold::default();
        let last = if range.grows {
            Unfinished::Preview
        } else {
            Unfinished::Final
        };
        fold(&mut rows, &lines(&bytes, first), encoding, last);
        let read = Read {
            material: Material::whole(rows.finish()),
            next: first + bytes.len() as u64,
            notes: Vec::new(),
            paints: paint::paints(&bytes),
        };
        Ok((read, gap))
    });
    let (read, gap) = read.await?;
    Ok(Read {
        notes: gap.map(|gap| output::gone(info, gap)).into_iter().collect(),
        ..read
    })
}

/// Its beginning and its end, what lies between counted.
async fn parts(journal: &Journal, info: &Info, range: Range) -> Result<Read, ReadError> {
    let at = |offset| Some(Cursor { offset, event: 0 });
    let query = LineQuery {
        from: at(range.from),
        until_cursor: at(range.to),
        streams: StreamSet::OUTPUT,
        unfinished: Unfinished::Hide,
        ..LineQuery::default()
    };
    let mut slice = slice(journal, info, query).await?;
    let mut notes = output::notes(info, journal, &slice)?;
    let edge_from = range.to - EDGE_BYTES;
    let encoding = encoding(info);
    let edges = apart(journal, info, move |journal| {
        let front = stretch(journal, range.from, range.from + EDGE_BYTES)?;
        let back = stretch(journal, edge_from, range.to)?;
        Ok((front, back))
    });
    let ((front, first, _), (back, last, _)) = edges.await?;
    let rows_of = |bytes: &[u8], offset| {
        let mut rows = Fold::default();
        fold(
            &mut rows,
            &lines(bytes, offset),
            encoding,
            Unfinished::Final,
        );
        rows.finish()
    };
    let begins = slice.front.first().is_some_and(|row| row.offset < first);
    if begins {
        let end = front.iter().position(|&byte| byte == b'\n');
        let row = rows_of(&front[..end.map_or(front.len(), |at| at + 1)], first);
        slice.front.splice(..1, row);
    }
    let open = back.iter().rposition(|&byte| byte == b'\n');
    let open = open.map_or(0, |at| at + 1);
    if open == 0 {
        notes.push("its last line is longer than what is shown of it".to_owned());
    }
    let last = rows_of(&back[open..], last + open as u64);
    add(&mut slice, last);
    Ok(Read {
        material: slice.material(),
        next: range.to,
        notes,
        paints: paint::paints(&back),
    })
}

fn add(slice: &mut Slice, rows: Vec<Row>) {
    if slice.is_partial() {
        slice.back.extend(rows);
    } else {
        slice.front.extend(rows);
    }
}

/// Bytes between two offsets, where they really begin, and what is gone before them.
fn stretch(
    journal: &Journal,
    from: u64,
    to: u64,
) -> Result<(Vec<u8>, u64, Option<Gap>), ReadError> {
    let page = journal.read(&ByteQuery {
        until: Some(to),
        max_bytes: to.saturating_sub(from),
        ..ByteQuery::from(Cursor {
            offset: from,
            event: 0,
        })
    })?;
    let first = page.chunks.first().map_or(page.next.offset, |it| it.offset);
    let bytes = page.chunks.into_iter().flat_map(|it| it.bytes).collect();
    Ok((bytes, first, page.gap))
}

/// Bytes as lines of a journal.
fn lines(bytes: &[u8], offset: u64) -> Vec<Line> {
    let mut offset = offset;
    let pieces = bytes.split_inclusive(|&byte| byte == b'\n');
    let lines = pieces.map(|piece| {
        let text = piece.strip_suffix(b"\n");
        let line = Line {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Pty,
            offset,
            number: 0,
            bytes: text.unwrap_or(piece).to_vec(),
            terminated: text.is_some(),
            clipped: 0,
            skipped: 0,
        };
        offset += piece.len() as u64;
        line
    });
    lines.collect()
}

/// The marks of what was left out name a cursor; here positions are offsets.
fn by_offset(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let mark = line
            .strip_prefix("[… ")
            .and_then(|it| it.strip_suffix(".0 …]"));
        match mark.and_then(|mark| mark.split_once(" omitted; cursor ")) {
            Some((what, offset)) => format!("[… {what} omitted; offset {offset} …]"),
            None => line.to_owned(),
        }
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_name_offsets() {
        assert_eq!(
            by_offset("a\n[… 4,812 lines (301,224 bytes) omitted; cursor 81231.0 …]\nb"),
            "a\n[… 4,812 lines (301,224 bytes) omitted; offset 81231 …]\nb"
        );
        assert_eq!(by_offset("[… cursor 1.0 …]"), "[… cursor 1.0 …]");
    }

    #[test]
    fn lines_add_up() {
        let lines = lines(b"a\r\n\nbc", 10);
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.offset, line.bytes.as_slice(), line.terminated))
            .collect();
        assert_eq!(
            told,
            [
                (10, &b"a\r"[..], true),
                (13, &b""[..], true),
                (14, &b"bc"[..], false)
            ]
        );
    }
}
