//! Finds the first match in output that arrives in chunks.

use std::time::{Duration, Instant};

use ostler_journal::query::Chunk;
use ostler_journal::{BudgetExceeded, Pattern};
use ostler_model::{StreamName, Timestamp};

use super::echo::EchoFilter;
use super::terminal_line::{LineBuffer, LineChange, LineParser};

/// Bytes of one line's text that are searched together; more are searched piece by piece.
pub const WINDOW_BYTES: usize = 256 * 1024;
/// Bytes that two such pieces have in common: what a match in a longer line may have.
pub const OVERLAP_BYTES: usize = 64 * 1024;
/// Lines that come to fewer bytes are tried one by one: what finds candidates among many has to
/// be compiled first.
const FILTER_BYTES: usize = 4 * 1024;
/// Streams of a command's output.
const STREAMS: [StreamName; 3] = [StreamName::Stdout, StreamName::Stderr, StreamName::Pty];
/// The place of a terminal's.
const TERMINAL: usize = 2;

/// Where a search begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchStart {
    /// What ended before this offset is not searched.
    pub(crate) after: u64,
    /// Whether the first chunk may begin within a line.
    pub(crate) in_line: bool,
    /// What of the output is the echo of an input.
    pub(crate) echo: EchoFilter,
    /// Whether text is in an encoding that is only read as a whole.
    pub(crate) is_encoded: bool,
}

/// A line, or a part of one, that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchHit {
    /// When its first byte came.
    pub(crate) at: Timestamp,
    /// Which stream it came on.
    pub(crate) stream: StreamName,
    /// The offset of the first byte that was searched in its line.
    pub(crate) offset: u64,
    /// The text that was searched.
    pub(crate) text: Vec<u8>,
}

/// A search under way.
#[derive(Debug)]
pub(crate) struct Searcher {
    pattern: Pattern,
    after: u64,
    echo: EchoFilter,
    is_encoded: bool,
    lines: [StreamLine; STREAMS.len()],
    /// A match in what looks like an echo.
    echo_hit: Option<SearchHit>,
    /// Time that searching took since the last look.
    used: Duration,
}

/// What of a line is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePart {
    /// What stands there; more may follow.
    Partial,
    /// What something else is about to be written over.
    Overwritten,
    /// The whole line, which has ended.
    Ended,
}

/// The line of one stream that is being written.
#[derive(Debug, Default)]
struct StreamLine {
    parser: LineParser,
    /// When and where it began, once it has.
    started: Option<(Timestamp, u64)>,
    /// Its text, or the end of that.
    buffer: LineBuffer,
    /// Whether `buffer` does not begin where the line does.
    is_cut: bool,
    /// Whether the text is as it was when it was last searched.
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

    /// Takes a chunk in; the first line that ended in it and matches.
    pub(crate) fn feed(&mut self, chunk: &Chunk) -> Result<Option<SearchHit>, BudgetExceeded> {
        let Some(index) = STREAMS.iter().position(|it| *it == chunk.stream) else {
            return Ok(None);
        };
        let mut line = std::mem::take(&mut self.lines[index]);
        let found = self.search_chunk(&mut line, chunk);
        self.lines[index] = line;
        found
    }

    /// Looks at lines that have no end yet, as they stand now.
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

    /// Bytes are gone: what follows is no part of the lines before.
    pub(crate) fn skip(&mut self) {
        for line in &mut self.lines {
            *line = StreamLine {
                is_cut: true,
                ..StreamLine::default()
            };
        }
    }

    /// Whether searching that many bytes more takes milliseconds at most.
    pub(crate) fn is_quick(&self, more: usize) -> bool {
        let open = self.lines.iter().map(|line| line.buffer.text().len());
        self.pattern.is_quick(open.max().unwrap_or(0) + more)
    }

    /// A match in what looks like the echo of the input. It is one all the same where the
    /// terminal echoes nothing.
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
            if let Some(hit) = self.search_piece(line, chunk.stream, (piece, offset))? {
                return Ok(Some(hit));
            }
            offset += piece.len() as u64;
            bytes = rest;
        }
        Ok(None)
    }

    /// How many of these bytes are whole lines in which nothing can match.
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

    /// Takes in bytes of one line, its end perhaps among them.
    fn search_piece(
        &mut self,
        line: &mut StreamLine,
        stream: StreamName,
        (bytes, offset): (&[u8], u64),
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
                    parser: line.parser,
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

    /// Whether a line matches as it stands.
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
        // Whether the beginning is in sight: `^` means nothing else.
        let first = usize::from(line.is_cut && !reply.is_empty());
        let is_echo = reply.is_empty() && !text.is_empty();
        if !is_echo {
            let found = find(&self.pattern, (reply, first), &mut self.used)?;
            return Ok(found.then(|| hit(reply)));
        }
        if self.echo_hit.is_none() {
            let found = find(&self.pattern, (text, 0), &mut self.used)?;
            self.echo_hit = found.then(|| hit(text));
        }
        Ok(None)
    }
}

/// Whether a text matches from a place on, within what is left of the budget that a pattern has
/// between two looks.
fn find(
    pattern: &Pattern,
    (text, from): (&[u8], usize),
    used: &mut Duration,
) -> Result<bool, BudgetExceeded> {
    let remaining = pattern.budget().saturating_sub(*used);
    let started = Instant::now();
    let found = pattern.find_from(text, from, remaining)?;
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
        // Written from the first column on, the beginning is in sight.
        self.is_cut &= !(is_lost && self.buffer.text().len() <= 1);
    }
}
