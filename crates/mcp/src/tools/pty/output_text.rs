//! A range of a terminal's output as plain text: exactly the bytes between two offsets, as lines,
//! without control sequences, redraws folded, within a budget.

use ostler_engine::ExecutionInfo;
use ostler_journal::query::JournalLine;
use ostler_journal::{ByteQuery, Gap, Journal, LineQuery, OpenLineMode, ReadError, StreamSet};
use ostler_model::{Cursor, StreamName, Timestamp};
use ostler_render::RowSlice;
use ostler_render::{
    ExcerptBudget, ExcerptInput, OutputRow, RedrawFolder, clean, excerpt, fold_lines,
};
use serde_json::Value;

use super::fullscreen;
use crate::output::{self, omitted_fields};
use crate::tool_call::ToolCall;
use ostler_interface::error::ApiError;
use ostler_interface::output_reader::{encoding, read_slice, run_read, run_read_of_size};

/// A range up to this size is read as a whole; of a larger one, its beginning, its end and the
/// failure lines between them.
const WHOLE_BYTES: u64 = 256 * 1024;
/// The number of bytes at either end of a larger range in which a line end is searched.
const EDGE_BYTES: u64 = 16 * 1024;
/// The number of bytes before a range in which a control sequence may begin that ends in it.
const CONTEXT_BYTES: u64 = 64 * 1024;

/// The text of a range.
#[derive(Debug, Default)]
pub(super) struct OutputSpan {
    pub(super) text: String,
    /// Its end: the offset to continue from.
    pub(super) next: u64,
    /// Notes about it.
    pub(super) notes: Vec<String>,
    /// The omitted part, as JSON.
    pub(super) omitted: Option<Value>,
    /// Whether it draws a screen rather than printing lines.
    pub(super) draws_screen: bool,
}

/// The bounds of a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanRange {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether more may come: an incomplete end is then left for later.
    pub(super) can_grow: bool,
}

/// The part of a range that was read.
#[derive(Debug, Default)]
struct SpanRead {
    material: ExcerptInput,
    next: u64,
    notes: Vec<String>,
    draws_screen: bool,
}

/// Reads a range.
pub(super) async fn read_span(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    range: SpanRange,
    chars: usize,
) -> Result<OutputSpan, ApiError> {
    if range.from >= range.to {
        return Ok(OutputSpan {
            next: range.from,
            ..OutputSpan::default()
        });
    }
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let read = if range.to - range.from <= WHOLE_BYTES {
        read_whole(&journal, info, range).await?
    } else {
        read_parts(&journal, info, range).await?
    };
    let budget = ExcerptBudget::new(chars, usize::MAX);
    let rendered = excerpt(read.material, budget);
    Ok(OutputSpan {
        text: cursor_to_offset(&rendered.blocks.join("\n")),
        next: read.next,
        notes: read.notes,
        omitted: rendered.omitted.map(omitted_fields),
        draws_screen: read.draws_screen,
    })
}

/// Number of lines that end in a range; none where it is too large to be on a screen, or cannot be
/// read.
pub(super) async fn count_line_ends(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    from: u64,
    to: u64,
) -> Option<usize> {
    let text = read_bytes(call, info, from, to).await?;
    Some(text.iter().filter(|byte| **byte == b'\n').count())
}

/// Whether a line with text ends in a range.
pub(super) async fn has_line(call: ToolCall<'_>, info: &ExecutionInfo, from: u64, to: u64) -> bool {
    let Some(text) = read_bytes(call, info, from, to).await else {
        return true;
    };
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let is_visible = |line: &&[u8]| !clean(&String::from_utf8_lossy(line)).trim().is_empty();
    lines.iter().any(is_visible)
}

/// A page of about this many bytes at the beginning of a range: up to its last line end, or all of
/// it where there is none. It ends between characters and control sequences.
pub(super) async fn page_range(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    all: SpanRange,
    length: u64,
) -> Result<SpanRange, ApiError> {
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let mut to = all.to;
    for read_bytes in [length + EDGE_BYTES, WHOLE_BYTES] {
        let read_to = all.to.min(all.from + read_bytes);
        let read = run_read_of_size(&journal, read_bytes, move |journal| {
            Ok(page_end(&read_in_text(journal, all.from, read_to)?, length))
        });
        to = read.await?;
        if to < read_to {
            break;
        }
    }
    Ok(SpanRange {
        to,
        can_grow: all.can_grow && to == all.to,
        ..all
    })
}

/// Where a page of the range ends.
fn page_end(read: &RangeRead, length: u64) -> u64 {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let most = length.min(read.bytes.len());
    let line_end = read.bytes[..most].iter().rposition(|&byte| byte == b'\n');
    let end = line_end.map_or(most, |at| at + 1);
    read.first + fullscreen::whole_end(&read.bytes, end) as u64
}

/// Raw bytes of a small range.
async fn read_bytes(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    from: u64,
    to: u64,
) -> Option<Vec<u8>> {
    if to.saturating_sub(from) > EDGE_BYTES {
        return None;
    }
    let journal = call.engine.journal(call.caller, &info.id.short()).ok()?;
    let length = to.saturating_sub(from);
    let read = run_read_of_size(&journal, length, move |journal| {
        read_range(journal, from, to)
    })
    .await;
    read.ok().map(|(bytes, ..)| bytes)
}

/// Reads all of it at once.
async fn read_whole(
    journal: &Journal,
    info: &ExecutionInfo,
    range: SpanRange,
) -> Result<SpanRead, ReadError> {
    let encoding = encoding(info);
    let length = range.to.saturating_sub(range.from);
    let read = run_read_of_size(journal, length, move |journal| {
        let RangeRead {
            mut bytes,
            first,
            gap,
        } = read_in_text(journal, range.from, range.to)?;
        if range.can_grow {
            let kept = bytes.len() - fullscreen::incomplete_tail(&bytes);
            bytes.truncate(kept);
        }
        let mut rows = RedrawFolder::default();
        let last = if range.can_grow {
            OpenLineMode::Preview
        } else {
            OpenLineMode::Final
        };
        fold_lines(&mut rows, &split_lines(&bytes, first), encoding, last);
        let read = SpanRead {
            material: ExcerptInput::from_rows(rows.finish()),
            next: first + bytes.len() as u64,
            notes: Vec::new(),
            draws_screen: fullscreen::draws_screen(&bytes),
        };
        Ok((read, gap))
    });
    let (read, gap) = read.await?;
    Ok(SpanRead {
        notes: gap
            .map(|gap| output::gap_note(info, gap))
            .into_iter()
            .collect(),
        ..read
    })
}

/// Reads its beginning and its end, and counts the lines in between.
async fn read_parts(
    journal: &Journal,
    info: &ExecutionInfo,
    range: SpanRange,
) -> Result<SpanRead, ReadError> {
    let at = |offset| Some(Cursor { offset, event: 0 });
    let query = LineQuery {
        from: at(range.from),
        until_cursor: at(range.to),
        streams: StreamSet::OUTPUT,
        unfinished: OpenLineMode::Hide,
        ..LineQuery::default()
    };
    let mut slice = read_slice(journal, info, query).await?;
    let mut notes = output::output_notes(info, journal, &slice)?;
    let edge_from = range.to - EDGE_BYTES;
    let encoding = encoding(info);
    let edges = run_read(journal, info, move |journal| {
        let front = read_range(journal, range.from, range.from + EDGE_BYTES)?;
        let back = read_range(journal, edge_from, range.to)?;
        Ok((front, back))
    });
    let ((front, first, _), (back, last, _)) = edges.await?;
    let rows_of = |bytes: &[u8], offset| {
        let mut rows = RedrawFolder::default();
        fold_lines(
            &mut rows,
            &split_lines(bytes, offset),
            encoding,
            OpenLineMode::Final,
        );
        rows.finish()
    };
    let starts_before = slice.front.first().is_some_and(|row| row.offset < first);
    if starts_before {
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
    append_rows(&mut slice, last);
    Ok(SpanRead {
        material: slice.into_excerpt_input(),
        next: range.to,
        notes,
        draws_screen: fullscreen::draws_screen(&back),
    })
}

fn append_rows(slice: &mut RowSlice, rows: Vec<OutputRow>) {
    if slice.is_partial() {
        slice.back.extend(rows);
    } else {
        slice.front.extend(rows);
    }
}

/// The bytes of a range, without the rest of a control sequence that began before it.
struct RangeRead {
    bytes: Vec<u8>,
    /// The offset of the first of them.
    first: u64,
    /// Output that is gone before them.
    gap: Option<Gap>,
}

fn read_in_text(journal: &Journal, from: u64, to: u64) -> Result<RangeRead, ReadError> {
    let (mut bytes, first, gap) = read_range(journal, from, to)?;
    let context = from.saturating_sub(CONTEXT_BYTES);
    let before = match gap {
        None if context < from => read_range(journal, context, from)?.0,
        None | Some(_) => Vec::new(),
    };
    let rest = fullscreen::sequence_rest(&before, &bytes);
    bytes.drain(..rest);
    Ok(RangeRead {
        bytes,
        first: first + rest as u64,
        gap,
    })
}

/// Bytes between two offsets, their actual start, and the bytes gone before them.
fn read_range(
    journal: &Journal,
    from: u64,
    to: u64,
) -> Result<(Vec<u8>, u64, Option<Gap>), ReadError> {
    let page = journal.read(&ByteQuery {
        until: Some(to),
        max_bytes: to.saturating_sub(from),
        joined: true,
        ..ByteQuery::starting_at(Cursor {
            offset: from,
            event: 0,
        })
    })?;
    let first = page.chunks.first().map_or(page.next.offset, |it| it.offset);
    let bytes = page.chunks.into_iter().flat_map(|it| it.bytes).collect();
    Ok((bytes, first, page.gap))
}

/// Splits bytes into lines as a journal returns them.
fn split_lines(bytes: &[u8], offset: u64) -> Vec<JournalLine> {
    let mut offset = offset;
    let pieces = bytes.split_inclusive(|&byte| byte == b'\n');
    let lines = pieces.map(|piece| {
        let text = piece.strip_suffix(b"\n");
        let line = JournalLine {
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

/// Replaces the cursor in omission markers by an offset.
fn cursor_to_offset(text: &str) -> String {
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
            cursor_to_offset("a\n[… 4,812 lines (301,224 bytes) omitted; cursor 81231.0 …]\nb"),
            "a\n[… 4,812 lines (301,224 bytes) omitted; offset 81231 …]\nb"
        );
        assert_eq!(cursor_to_offset("[… cursor 1.0 …]"), "[… cursor 1.0 …]");
    }

    #[test]
    fn lines_add_up() {
        let lines = split_lines(b"a\r\n\nbc", 10);
        let fields: Vec<_> = lines
            .iter()
            .map(|line| (line.offset, line.bytes.as_slice(), line.terminated))
            .collect();
        assert_eq!(
            fields,
            [
                (10, &b"a\r"[..], true),
                (13, &b""[..], true),
                (14, &b"bc"[..], false)
            ]
        );
    }
}
