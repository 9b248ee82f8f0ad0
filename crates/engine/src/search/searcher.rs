//! Finds the first match in output that arrives in chunks.

use std::time::{Duration, Instant};

use ostler_journal::query::Chunk;
use ostler_journal::{BudgetExceeded, Pattern};
use ostler_model::{StreamName, Timestamp};

use super::echo::EchoFilter;
use super::terminal_line::{LineBuffer, LineChange, LineParser};

/// The most bytes of one line that are searched at once; a longer line is searched in pieces.
pub const WINDOW_BYTES: usize = 256 * 1024;
/// The overlap of two pieces, in bytes: the longest possible match in a longer line.
pub const OVERLAP_BYTES: usize = 64 * 1024;
/// Below this number of bytes, lines are searched one by one: a filter for many lines has to be
/// compiled first.
const FILTER_BYTES: usize = 4 * 1024;
/// The streams of a command's output.
const STREAMS: [StreamName; 3] = [StreamName::Stdout, StreamName::Stderr, StreamName::Pty];
/// The index of the terminal's stream.
const TERMINAL: usize = 2;

/// Where and how a search begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchStart {
    /// Lines that ended before this offset are not searched.
    pub(crate) after: u64,
    /// Whether the first chunk may begin inside a line.
    pub(crate) in_line: bool,
    /// Removes the echo of an input.
    pub(crate) echo: EchoFilter,
    /// Whether the encoding can only be decoded as a whole.
    pub(crate) is_encoded: bool,
}

/// A matching line, or part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchHit {
    /// When its first byte arrived.
    pub(crate) at: Timestamp,
    /// The stream it arrived on.
    pub(crate) stream: StreamName,
    /// The offset of the first searched byte.
    pub(crate) offset: u64,
    /// The searched text.
    pub(crate) text: Vec<u8>,
}

/// An incremental search over chunks of output.
#[derive(Debug)]
pub(crate) struct Searcher {
    pattern: Pattern,
    after: u64,
    echo: EchoFilter,
    is_encoded: bool,
    lines: [StreamLine; STREAMS.len()],
    /// A match in text that may be an echo.
    echo_hit: Option<SearchHit>,
    /// Time spent on searching since the budget was last reset.
    used: Duration,
}

/// The part of a line that is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePart {
    /// The current text of a line that has not ended.
    Partial,
    /// Text that is about to be overwritten.
    Overwritten,
    /// The whole line, which has ended.
    Ended,
}

/// The unfinished line of one stream.
#[derive(Debug, Default)]
struct StreamLine {
    parser: LineParser,
    /// The time and offset of its beginning.
    started: Option<(Timestamp, u64)>,
    /// Its text, or the end of a longer text.
    buffer: LineBuffer,
    /// Whether the beginning of the line is no longer in `buffer`.
    is_cut: bool,
    /// Whether the text is unchanged since it was last searched.
    is_searched: bool,
    /// The offset after its last byte.
    end: u64,
}

impl Searcher {
    pub(crate) fn new(pattern: Pattern, start: SearchStart) -> Self {
        let mut lines: [StreamLine; STREAMS.len()] = Default::default();
        for line in &mut lines {
            line.is_cut = start.in_line;
        }
        let terminal = &mut lines[TERMINAL];
        terminal.buffer = LineBuffer::from_text(start.echo.prompt().to_vec());
        Self {
            pattern,
            after: start.after,
            echo: start.echo,
            is_encoded: start.is_encoded,
            lines,
            echo_hit: None,
            used: Duration::ZERO,
        }
    }

    /// So many bytes follow. Where they cannot take long, they have a time budget of their own: a search
    /// of much output is slow, and not for its pattern, on a machine that is busy.
    pub(crate) fn begin_page(&mut self, bytes: usize) {
        if self.pattern.is_quick(bytes) {
            self.used = Duration::ZERO;
        }
    }

    /// Adds a chunk; returns the first line that ended in it and matches.
    pub(crate) fn feed(&mut self, chunk: &Chunk) -> Result<Option<SearchHit>, BudgetExceeded> {
        let Some(index) = STREAMS.iter().position(|it| *it == chunk.stream) else {
            return Ok(None);
        };
        let mut line = std::mem::take(&mut self.lines[index]);
        let found = self.search_chunk(&mut line, chunk);
        self.lines[index] = line;
        found
    }

    /// Searches the current text of unfinished lines.
    pub(crate) fn search_open_lines(&mut self) -> Result<Option<SearchHit>, BudgetExceeded> {
        for (index, stream) in STREAMS.into_iter().enumerate() {
            let mut line = std::mem::take(&mut self.lines[index]);
            let found = self.search(&mut line, stream, LinePart::Partial);
            self.lines[index] = line;
            if let Some(hit) = found? {
                return Ok(Some(hit));
            }
        }
        self.used = Duration::ZERO;
        Ok(None)
    }

    /// Discards unfinished lines, because output after them is missing.
    pub(crate) fn skip(&mut self) {
        for line in &mut self.lines {
            *line = StreamLine {
                is_cut: true,
                ..StreamLine::default()
            };
        }
    }

    /// Whether searching this many more bytes takes milliseconds at most.
    pub(crate) fn is_quick(&self, more: usize) -> bool {
        let open = self.lines.iter().map(|line| line.buffer.text().len());
        self.pattern.is_quick(open.max().unwrap_or(0) + more)
    }

    /// A match in text that looks like the echo of the input. The caller uses it where the terminal
    /// does not echo.
    pub(crate) fn echo_hit(&self) -> Option<&SearchHit> {
        self.echo_hit.as_ref()
    }

    fn search_chunk(
        &mut self,
        line: &mut StreamLine,
        chunk: &Chunk,
    ) -> Result<Option<SearchHit>, BudgetExceeded> {
        let (mut bytes, mut offset) = (chunk.bytes.as_slice(), chunk.offset);
        while !bytes.is_empty() {
            let skipped = self.skippable_len(line, bytes, offset);
            bytes = &bytes[skipped..];
            offset += skipped as u64;
            let newline = bytes.iter().position(|&byte| byte == b'\n');
            let length = newline.map_or(bytes.len(), |at| at + 1);
            let (piece, rest) = bytes.split_at(length.min(WINDOW_BYTES));
            if !piece.is_empty() {
                line.started.get_or_insert((chunk.at, offset));
            }
            if let Some(hit) = self.search_piece(line, chunk.stream, piece, offset)? {
                return Ok(Some(hit));
            }
            offset += piece.len() as u64;
            bytes = rest;
        }
        Ok(None)
    }

    /// The length of the whole lines at the beginning of these bytes that cannot match.
    fn skippable_len(&self, line: &StreamLine, bytes: &[u8], offset: u64) -> usize {
        let is_plain = line.started.is_none() && line.parser.is_in_text() && self.echo.is_done();
        if !is_plain {
            return 0;
        }
        let Some(last) = bytes.iter().rposition(|&byte| byte == b'\n') else {
            return 0;
        };
        let lines = &bytes[..=last];
        let is_old = offset + lines.len() as u64 <= self.after;
        let is_text = !lines.contains(&0x1b) && !lines.contains(&b'\r') && !lines.contains(&0x08);
        let is_worth = lines.len() >= FILTER_BYTES;
        if is_old || (is_worth && is_text && !self.pattern.may_match(lines)) {
            lines.len()
        } else {
            0
        }
    }

    /// Adds bytes of one line, possibly with its end.
    fn search_piece(
        &mut self,
        line: &mut StreamLine,
        stream: StreamName,
        bytes: &[u8],
        offset: u64,
    ) -> Result<Option<SearchHit>, BudgetExceeded> {
        for (index, &byte) in bytes.iter().enumerate() {
            line.end = offset + index as u64 + 1;
            let change = match byte {
                b'\n' => {
                    line.parser.feed(byte);
                    LineChange::End
                }
                _ if self.is_encoded => LineChange::Write(byte),
                _ => line.parser.feed(byte),
            };
            if change == LineChange::End {
                let found = self.search(line, stream, LinePart::Ended)?;
                if found.is_some() {
                    return Ok(found);
                }
                self.echo.end_line(line.buffer.text());
                *line = StreamLine {
                    parser: std::mem::take(&mut line.parser),
                    ..StreamLine::default()
                };
                continue;
            }
            if line.buffer.would_erase(change)
                && let Some(hit) = self.search(line, stream, LinePart::Overwritten)?
            {
                return Ok(Some(hit));
            }
            line.apply(change);
        }
        if line.buffer.text().len() > WINDOW_BYTES {
            let found = self.search(line, stream, LinePart::Partial)?;
            line.buffer.keep_last(OVERLAP_BYTES);
            line.is_cut = true;
            return Ok(found);
        }
        Ok(None)
    }

    /// Searches the current text of a line.
    fn search(
        &mut self,
        line: &mut StreamLine,
        stream: StreamName,
        part: LinePart,
    ) -> Result<Option<SearchHit>, BudgetExceeded> {
        let is_unchanged = line.is_searched && part != LinePart::Ended;
        let Some((at, offset)) = line.started.filter(|_| !is_unchanged) else {
            return Ok(None);
        };
        line.is_searched = true;
        if part != LinePart::Partial && line.end <= self.after {
            return Ok(None);
        }
        let ended = part == LinePart::Ended;
        let text = if self.is_encoded {
            let text = line.buffer.text();
            text.strip_suffix(b"\r").unwrap_or(text)
        } else {
            line.buffer.text()
        };
        let hit = |text: &[u8]| SearchHit {
            at,
            stream,
            offset,
            text: text.to_vec(),
        };
        let reply = self.echo.reply(text, ended);
        // Where the beginning of the line was cut off, `^` must not match.
        let first = usize::from(line.is_cut && !reply.is_empty());
        let is_echo = reply.is_empty() && !text.is_empty();
        if !is_echo {
            let found = find(&self.pattern, reply, first, &mut self.used)?;
            return Ok(found.then(|| hit(reply)));
        }
        if self.echo_hit.is_none() {
            let found = find(&self.pattern, text, 0, &mut self.used)?;
            self.echo_hit = found.then(|| hit(text));
        }
        Ok(None)
    }
}

/// Whether a text matches from a position, within the remaining time budget of the pattern.
fn find(
    pattern: &Pattern,
    text: &[u8],
    from: usize,
    used: &mut Duration,
) -> Result<bool, BudgetExceeded> {
    let remaining = pattern.budget().saturating_sub(*used);
    let started = Instant::now();
    let found = pattern.find_from(text, from, remaining);
    // Not what had remained: that says nothing about the pattern.
    let budget = pattern.budget();
    let found = found.map_err(|_| BudgetExceeded { budget })?;
    *used += started.elapsed();
    Ok(found.is_some())
}

impl StreamLine {
    fn apply(&mut self, change: LineChange) {
        let length = self.buffer.text().len();
        let is_lost = self.buffer.would_erase(change);
        self.buffer.apply(change);
        if is_lost || self.buffer.text().len() != length {
            self.is_searched = false;
        }
        // Overwriting from the first column restores the beginning of the line.
        self.is_cut &= !(is_lost && self.buffer.text().len() <= 1);
    }
}
