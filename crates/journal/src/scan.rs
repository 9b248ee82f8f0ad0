//! The line scanner: all lines of the requested streams that end in a range, in the order in which
//! they end.
//!
//! Whole lines inside a run are passed on without copying; with a pattern, only candidates are
//! matched. The line at the end of a run is buffered, up to a limit.

use ostler_model::StreamName;

use crate::index::{IndexRecord, relative_offset};
use crate::line_start;
use crate::open_line::OpenLine;
use crate::pattern::{BudgetedMatcher, Pattern, next_control};
use crate::query::{Gap, STREAMS, StreamSet, stream_code};
use crate::record_iter::{ForwardRecords, RecordBlock, RecordRun, RecordStep};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// The most bytes of a line longer than a block that a pattern is matched against.
pub(crate) const MATCH_BYTES: usize = 16 * 1024 * 1024;

/// One line found by the scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScannedLine<'b> {
    pub(crate) stream: StreamName,
    /// The offset of its first byte.
    pub(crate) offset: u64,
    pub(crate) at_ns: i64,
    /// The line number, from 1.
    pub(crate) number: u64,
    /// Its first bytes, without the newline.
    pub(crate) text: &'b [u8],
    /// Its length without the newline.
    pub(crate) len: u64,
    /// The offset after its last byte.
    pub(crate) end: u64,
    pub(crate) terminated: bool,
}

impl<'b> ScannedLine<'b> {
    /// The same line with this text instead of its own, where there is one.
    pub(crate) fn with_text(&self, text: Option<&'b [u8]>) -> Self {
        match text {
            None => *self,
            Some(text) => Self {
                text,
                len: text.len() as u64,
                ..*self
            },
        }
    }
}

/// Whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanControl {
    Continue,
    Stop,
}

pub(crate) trait LineVisitor {
    fn visit_line(&mut self, line: &ScannedLine<'_>) -> Result<ScanControl, SegmentError>;

    /// Called before each block; `at_ns` is the time of its first record.
    fn visit_block(&mut self, _at_ns: i64) -> ScanControl {
        ScanControl::Continue
    }
}

/// Why a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanEnd {
    /// The range was read; lines may be open.
    End,
    /// Bytes are gone or damaged here; open lines were passed on as they are.
    Gap(Gap),
    /// Nothing from this offset on can be read.
    Damaged(u64),
    /// The visitor ended the scan.
    Visitor,
}

/// The range and the pattern of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanRange<'p> {
    /// Lines that end at or after this offset.
    pub(crate) from: u64,
    /// Lines whose last byte lies before this offset.
    pub(crate) until: u64,
    pub(crate) streams: StreamSet,
    pub(crate) pattern: Option<&'p Pattern>,
    /// The most bytes of a line to buffer.
    pub(crate) keep: usize,
}

/// A scan in progress.
pub(crate) struct LineScanner<'v, 'd, 'p> {
    snapshot: &'v JournalSnapshot<'d>,
    range: ScanRange<'p>,
    matcher: &'p BudgetedMatcher,
    open: [Option<OpenLine>; STREAMS.len()],
    is_resolved: [bool; STREAMS.len()],
}

impl<'v, 'd, 'p> LineScanner<'v, 'd, 'p> {
    pub(crate) fn new(
        snapshot: &'v JournalSnapshot<'d>,
        range: ScanRange<'p>,
        matcher: &'p BudgetedMatcher,
    ) -> Self {
        Self {
            snapshot,
            range,
            matcher,
            open: [const { None }; STREAMS.len()],
            is_resolved: [false; STREAMS.len()],
        }
    }

    /// Passes every line to `visitor`.
    pub(crate) fn run(&mut self, visitor: &mut dyn LineVisitor) -> Result<ScanEnd, SegmentError> {
        if self.range.from >= self.range.until {
            return Ok(ScanEnd::End);
        }
        let mut forward = ForwardRecords::new(self.snapshot, self.range.from)?;
        let mut block = RecordBlock::default();
        loop {
            match forward.next_block(&mut block)? {
                RecordStep::Block if block.first_offset() >= self.range.until => {
                    return Ok(ScanEnd::End);
                }
                RecordStep::Block => {
                    if self.block(&block, visitor)? == ScanControl::Stop {
                        return Ok(ScanEnd::Visitor);
                    }
                }
                RecordStep::Gap(gap) if gap.from >= self.range.until => return Ok(ScanEnd::End),
                RecordStep::Gap(gap) => {
                    let flow = self.flush(visitor)?;
                    let stop = if flow == ScanControl::Stop {
                        ScanEnd::Visitor
                    } else {
                        ScanEnd::Gap(gap)
                    };
                    return Ok(stop);
                }
                RecordStep::Damaged(at) => return Ok(ScanEnd::Damaged(at)),
                RecordStep::End => return Ok(ScanEnd::End),
            }
        }
    }

    /// Passes on the open lines, in the order in which they began.
    pub(crate) fn flush(
        &mut self,
        visitor: &mut dyn LineVisitor,
    ) -> Result<ScanControl, SegmentError> {
        let mut open: Vec<(StreamName, OpenLine)> = Vec::new();
        for stream in self.range.streams.iter() {
            let line = self.open[usize::from(stream_code(stream))].take();
            open.extend(line.map(|line| (stream, line)));
        }
        open.sort_by_key(|(_, line)| line.offset);
        for (stream, line) in open {
            let scanned = line.to_scanned(stream, line.end, false);
            if self.is_match(scanned.text)? && visitor.visit_line(&scanned)? == ScanControl::Stop {
                return Ok(ScanControl::Stop);
            }
        }
        Ok(ScanControl::Continue)
    }

    /// Also finds the open lines of streams that printed nothing in the range.
    pub(crate) fn find_open(&mut self) -> Result<(), SegmentError> {
        for stream in self.range.streams.iter() {
            let code = usize::from(stream_code(stream));
            if !self.is_resolved[code] {
                self.is_resolved[code] = true;
                self.open[code] = line_start::open_line_before(
                    self.snapshot,
                    self.range.until,
                    stream,
                    self.range.keep,
                )?;
            }
        }
        Ok(())
    }

    fn block(
        &mut self,
        scan_block: &RecordBlock,
        visitor: &mut dyn LineVisitor,
    ) -> Result<ScanControl, SegmentError> {
        if visitor.visit_block(scan_block.records[0].at_ns) == ScanControl::Stop {
            return Ok(ScanControl::Stop);
        }
        for run in scan_block.runs() {
            let first = run.records[0].offset;
            if first >= self.range.until {
                break;
            }
            if self.range.streams.contains(run.stream) {
                let limit = relative_offset(first, self.range.until);
                let bytes = &run.bytes[..run.bytes.len().min(limit)];
                if self.scan_run(RecordRun { bytes, ..run }, visitor)? == ScanControl::Stop {
                    return Ok(ScanControl::Stop);
                }
            }
        }
        Ok(ScanControl::Continue)
    }

    /// Processes a run of one stream.
    fn scan_run(
        &mut self,
        run: RecordRun<'_>,
        visitor: &mut dyn LineVisitor,
    ) -> Result<ScanControl, SegmentError> {
        let code = usize::from(stream_code(run.stream));
        if !self.is_resolved[code] {
            self.is_resolved[code] = true;
            self.open[code] = self.line_before(&run)?;
        }
        let mut lines = RunLines::new(run);
        if let Some(mut open) = self.open[code].take() {
            let Some(newline) = memchr::memchr(b'\n', run.bytes) else {
                open.extend(run.bytes, lines.base, self.range.keep);
                self.open[code] = Some(open);
                return Ok(ScanControl::Continue);
            };
            open.extend(&run.bytes[..newline], lines.base, self.range.keep);
            let end = lines.base + newline as u64 + 1;
            let scanned = open.to_scanned(run.stream, end, true);
            lines.skip_to(newline + 1, open.number + 1);
            if end > self.range.from
                && self.is_match(scanned.text)?
                && visitor.visit_line(&scanned)? == ScanControl::Stop
            {
                return Ok(ScanControl::Stop);
            }
        }
        let last = memchr::memrchr(b'\n', run.bytes).map_or(0, |newline| newline + 1);
        if last > lines.at && self.whole_lines(&mut lines, last, visitor)? == ScanControl::Stop {
            return Ok(ScanControl::Stop);
        }
        let from = last.max(lines.at);
        if from < run.bytes.len() {
            let (record, number) = lines.locate(from);
            let mut open = OpenLine {
                offset: lines.base + from as u64,
                at_ns: record.at_ns,
                number,
                ..OpenLine::default()
            };
            open.extend(
                &run.bytes[from..],
                lines.base + from as u64,
                self.range.keep,
            );
            self.open[code] = Some(open);
        }
        Ok(ScanControl::Continue)
    }

    /// Processes the lines that begin and end inside the run, up to `last`.
    fn whole_lines(
        &mut self,
        lines: &mut RunLines<'_>,
        last: usize,
        visitor: &mut dyn LineVisitor,
    ) -> Result<ScanControl, SegmentError> {
        // Only the run that holds the beginning of the range can end lines before it.
        let skip = relative_offset(lines.base, self.range.from);
        if skip > lines.at && skip > 0 {
            let before = memchr::memrchr(b'\n', &lines.run.bytes[..skip.min(last)]);
            lines.at = lines.at.max(before.map_or(0, |newline| newline + 1));
        }
        while lines.at < last {
            let Some((from, newline)) = self.candidate(lines, last)? else {
                break;
            };
            let text = &lines.run.bytes[from..newline];
            if self.is_match(text)? {
                let (record, number) = lines.locate(from);
                let scanned = ScannedLine {
                    stream: lines.run.stream,
                    offset: lines.base + from as u64,
                    at_ns: record.at_ns,
                    number,
                    text,
                    len: text.len() as u64,
                    end: lines.base + newline as u64 + 1,
                    terminated: true,
                };
                if visitor.visit_line(&scanned)? == ScanControl::Stop {
                    return Ok(ScanControl::Stop);
                }
            }
            lines.at = newline + 1;
        }
        lines.at = last;
        Ok(ScanControl::Continue)
    }

    /// The next line that may match: the offsets of its first byte and of its newline.
    fn candidate(
        &self,
        lines: &mut RunLines<'_>,
        last: usize,
    ) -> Result<Option<(usize, usize)>, SegmentError> {
        let bytes = lines.run.bytes;
        let candidate = match self.range.pattern {
            Some(pattern) => {
                let search = |from: usize| self.matcher.candidate(pattern, &bytes[from..last]);
                let by_bytes = lines.next_match.at_or_after(lines.at, search);
                let by_bytes = by_bytes.map_err(|error| SegmentError::Read(error.into()))?;
                let by_text = if pattern.matches_plain_text() {
                    let search =
                        |from: usize| Ok::<_, SegmentError>(next_control(&bytes[from..last]));
                    lines.next_control.at_or_after(lines.at, search)?
                } else {
                    None
                };
                by_bytes.into_iter().chain(by_text).min()
            }
            None => Some(lines.at),
        };
        let Some(candidate) = candidate else {
            return Ok(None);
        };
        // A match at the very end belongs to the last line.
        let candidate = candidate.min(last - 1);
        let from = memchr::memrchr(b'\n', &bytes[lines.at..candidate]);
        let from = from.map_or(lines.at, |newline| lines.at + newline + 1);
        let newline = memchr::memchr(b'\n', &bytes[candidate..last]);
        Ok(newline.map(|newline| (from, candidate + newline)))
    }

    fn is_match(&mut self, text: &[u8]) -> Result<bool, SegmentError> {
        let Some(pattern) = self.range.pattern else {
            return Ok(true);
        };
        self.matcher
            .is_match(pattern, text)
            .map_err(|error| SegmentError::Read(error.into()))
    }

    /// The line that was open when the run began.
    fn line_before(&self, run: &RecordRun<'_>) -> Result<Option<OpenLine>, SegmentError> {
        let first = &run.records[0];
        if first.begins_line {
            return Ok(None);
        }
        line_start::line_continuing_into(self.snapshot, run.position, first, self.range.keep)
            .map(Some)
    }
}

impl OpenLine {
    fn to_scanned(&self, stream: StreamName, end: u64, terminated: bool) -> ScannedLine<'_> {
        ScannedLine {
            stream,
            offset: self.offset,
            at_ns: self.at_ns,
            number: self.number,
            text: &self.kept,
            len: self.len,
            end,
            terminated,
        }
    }
}

/// Locates the lines of a run, with their numbers and times.
struct RunLines<'b> {
    run: RecordRun<'b>,
    base: u64,
    /// The index of the next line's first byte.
    at: usize,
    /// The index of a line's first byte, and the number of that line.
    counted: (usize, u64),
    /// The record of the last line located.
    record: usize,
    /// Where the pattern may match next.
    next_match: NextIndex,
    /// The next byte that makes a line read differently.
    next_control: NextIndex,
}

/// The result of a search in bytes, kept until it is passed: a search for one of two things is not
/// repeated while the other is found.
#[derive(Debug, Clone, Copy)]
enum NextIndex {
    Unknown,
    /// At this index, or nowhere.
    Known(Option<usize>),
}

impl NextIndex {
    /// What is found from `at` on; `search` returns an index counted from its argument.
    fn at_or_after<E>(
        &mut self,
        at: usize,
        search: impl FnOnce(usize) -> Result<Option<usize>, E>,
    ) -> Result<Option<usize>, E> {
        if let Self::Known(known) = *self
            && known.is_none_or(|known| known >= at)
        {
            return Ok(known);
        }
        let found = search(at)?.map(|found| at + found);
        *self = Self::Known(found);
        Ok(found)
    }
}

impl<'b> RunLines<'b> {
    fn new(run: RecordRun<'b>) -> Self {
        Self {
            run,
            base: run.records[0].offset,
            at: 0,
            counted: (0, run.records[0].line + 1),
            record: 0,
            next_match: NextIndex::Unknown,
            next_control: NextIndex::Unknown,
        }
    }

    fn skip_to(&mut self, at: usize, number: u64) {
        self.at = at;
        self.counted = (at, number);
    }

    /// The record that holds the beginning of a line, and the line's number. Calls must not go
    /// backward.
    fn locate(&mut self, from: usize) -> (&'b IndexRecord, u64) {
        let offset = self.base + from as u64;
        let records = self.run.records;
        let ahead = records[self.record..].partition_point(|record| record.end() <= offset);
        self.record = (self.record + ahead).min(records.len() - 1);
        let record = &records[self.record];
        let start = relative_offset(self.base, record.offset);
        if start > self.counted.0 {
            self.counted = (start, record.line + 1);
        }
        let between = &self.run.bytes[self.counted.0..from];
        let number = self.counted.1 + memchr::memchr_iter(b'\n', between).count() as u64;
        self.counted = (from, number);
        (record, number)
    }
}
