//! The raw view of a terminal's output, by byte offsets.

use ostler_journal::{ByteQuery, Journal, ReadError};
use ostler_model::Cursor;

/// The furthest back settings can let it reach, in bytes: a view is read into memory.
pub const TERMINAL_VIEW_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The longest character of UTF-8, in bytes.
const CHARACTER_BYTES: u64 = 4;

/// Selects a part of the raw output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalPageQuery {
    /// The first byte, counted from the session's start; none begins at the oldest byte of
    /// the view.
    pub offset: Option<u64>,
    /// The most bytes, and at least one whole character where there is one; none takes the whole
    /// view, 0 only returns the offsets.
    pub limit: Option<u64>,
}

/// A chunk of raw output: ANSI sequences unmodified, never cut within a UTF-8 character while more
/// can follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalPage {
    /// The bytes.
    pub data: Vec<u8>,
    /// The offset of the first byte of `data`.
    pub offset: u64,
    /// The offset to request next.
    pub next_offset: u64,
    /// The oldest offset of the view.
    pub start_offset: u64,
    /// The newest offset: the session's output length.
    pub end_offset: u64,
    /// Whether `offset` lay below `start_offset` and was moved there.
    pub truncated: bool,
}

impl TerminalPage {
    /// The page of a session without output.
    pub(crate) const fn empty() -> Self {
        Self {
            data: Vec::new(),
            offset: 0,
            next_offset: 0,
            start_offset: 0,
            end_offset: 0,
            truncated: false,
        }
    }
}

/// The range of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ViewWindow {
    /// The most bytes.
    pub(crate) view_bytes: u64,
    /// The end of the newest range that is known to be dropped.
    pub(crate) dropped_to: u64,
    /// Whether no output can follow.
    pub(crate) finished: bool,
}

/// Reads a page.
pub(crate) fn read(
    journal: &Journal,
    query: TerminalPageQuery,
    window: ViewWindow,
) -> Result<TerminalPage, ReadError> {
    let std::ops::Range { start, end } = journal.extent()?;
    let view_bytes = window.view_bytes.min(TERMINAL_VIEW_MAX_BYTES);
    let oldest = start.max(window.dropped_to);
    let start = end.saturating_sub(view_bytes).max(oldest).min(end);
    let requested = query.offset.unwrap_or(start);
    let mut page = TerminalPage {
        data: Vec::new(),
        offset: requested.clamp(start, end),
        next_offset: requested.clamp(start, end),
        start_offset: start,
        end_offset: end,
        truncated: requested < start,
    };
    let limit = query.limit.unwrap_or(u64::MAX);
    if limit > 0 {
        let has_gap = fill(&mut page, journal, limit)?;
        let length = whole_chars_len(&page.data, limit, window.finished || has_gap);
        page.data.truncate(length);
    }
    page.next_offset = page.offset + page.data.len() as u64;
    Ok(page)
}

/// Reads this many bytes and the rest of a character beyond them; true where the following bytes
/// are gone.
fn fill(page: &mut TerminalPage, journal: &Journal, limit: u64) -> Result<bool, ReadError> {
    let target = limit.saturating_add(CHARACTER_BYTES - 1);
    loop {
        let have = page.data.len() as u64;
        let remaining = target.min(page.end_offset - page.offset) - have;
        if remaining == 0 {
            return Ok(false);
        }
        let from = Cursor {
            offset: page.offset + have,
            event: 0,
        };
        let read = journal.read(&ByteQuery {
            until: Some(page.end_offset),
            max_bytes: remaining,
            ..ByteQuery::starting_at(from)
        })?;
        if let Some(gap) = read.gap {
            if have > 0 {
                return Ok(true);
            }
            // It was dropped during the read.
            page.truncated = true;
            page.offset = gap.to;
            page.start_offset = page.start_offset.max(gap.to);
            page.end_offset = page.end_offset.max(gap.to);
        }
        if read.chunks.is_empty() {
            return Ok(false);
        }
        for chunk in read.chunks {
            page.data.extend_from_slice(&chunk.bytes);
        }
    }
}

/// How many of the bytes fit a page of `limit`: whole characters, and where the first is longer
/// than the limit, that one. An incomplete character is held back unless nothing follows.
fn whole_chars_len(bytes: &[u8], limit: u64, complete: bool) -> usize {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let limit = limit.min(bytes.len());
    let from = limit.saturating_sub(3);
    // Only a character that begins just before the limit can exceed it.
    let is_lead_byte = |index: &usize| bytes[*index] >= 0xC0;
    let Some(last) = (from..limit).rev().find(is_lead_byte) else {
        return limit;
    };
    let length = char_len(&bytes[last..], complete);
    match length {
        0 => last,
        _ if last + length <= limit => limit,
        _ if last == 0 => length,
        _ => last,
    }
}

/// The length of the first character, or of invalid bytes; 0 where the rest of it may still arrive.
fn char_len(bytes: &[u8], complete: bool) -> usize {
    let longest = bytes.len().min(4);
    let bytes = &bytes[..longest];
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => match std::str::from_utf8(&bytes[..error.valid_up_to()]) {
            Ok(text) if !text.is_empty() => text,
            Ok(_) | Err(_) => {
                return error
                    .error_len()
                    .unwrap_or(if complete { longest } else { 0 });
            }
        },
    };
    valid.chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
