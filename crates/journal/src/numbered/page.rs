//! A page of lines from a number on.

use std::time::Duration;

use crate::filter::{nanoseconds, start_around_match};
use crate::line_range::offset_at;
use crate::line_start::open_line_before;
use crate::pattern::{BudgetedMatcher, Pattern};
use crate::query::{Gap, JournalLine, StreamSet};
use crate::read::timestamp;
use crate::scan::{LineScanner, LineVisitor, ScanControl, ScanEnd, ScanRange, ScannedLine};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

use super::line_count::{ended_lines, lines_before, lines_before_each, offset_after_line};
use super::query::{LinePosition, NumberedLine, NumberedPage, NumberedQuery};

/// Answers a query on one snapshot.
pub(crate) fn page(
    snapshot: &JournalSnapshot<'_>,
    query: &NumberedQuery,
) -> Result<NumberedPage, SegmentError> {
    let extent = LineExtent::of(snapshot)?;
    let first = match query.from {
        LinePosition::Number(number) => number,
        LinePosition::Time(at) => {
            lines_before(snapshot, offset_at(snapshot, nanoseconds(at))?)? + 1
        }
        LinePosition::Offset(offset) => lines_before(snapshot, offset.min(snapshot.end))? + 1,
        LinePosition::Last(count) => (extent.ended + 1).saturating_sub(count),
    };
    // Not bounded by the lines that have ended: beside damage, these are counted too low.
    let first = first.max(extent.first_kept);
    let from = offset_after_line(snapshot, first - 1)?;
    let mut collector = LineCollector {
        max_lines: query.max_lines,
        max_bytes: query.max_bytes,
        max_line_bytes: query.max_line_bytes,
        ..LineCollector::new(BudgetedMatcher::new(Duration::MAX))
    };
    let range = ScanRange {
        from,
        until: snapshot.end,
        streams: query.streams,
        pattern: None,
        keep: usize::try_from(query.max_line_bytes).unwrap_or(usize::MAX),
    };
    let (gaps, damaged) = collector.collect(snapshot, range, true)?;
    let more = collector.is_cut;
    let lines = number_lines(snapshot, from, collector.lines)?;
    let read_to = lines.iter().rfind(|one| one.line.terminated);
    let ended = extent.ended.max(read_to.map_or(0, |one| one.number));
    let next = match lines.last().filter(|_| more) {
        // Beside damage, counts may be too low; a reader gets on all the same.
        Some(last) => last.number.max(first).saturating_add(1),
        None => ended + 1,
    };
    Ok(NumberedPage {
        first_kept: extent.first_kept,
        ended,
        lines,
        gaps,
        next,
        more,
        damaged,
    })
}

/// Which lines there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineExtent {
    /// The number of the oldest line kept, as far as it is known.
    pub(super) first_kept: u64,
    /// How many lines have ended.
    pub(super) ended: u64,
}

impl LineExtent {
    pub(super) fn of(snapshot: &JournalSnapshot<'_>) -> Result<Self, SegmentError> {
        let dropped = lines_before(snapshot, snapshot.start()?)?;
        // An attempt that begins in memory does not know the counts of earlier ones.
        let ended = ended_lines(&snapshot.as_floor()?.tallies).max(dropped);
        Ok(Self {
            first_kept: dropped + 1,
            ended,
        })
    }
}

/// A line and the offset at which it ended: after its last byte, or where the output after it is
/// lost or not printed yet.
type EndedLine = (u64, JournalLine);

/// The end of a line until it is known.
const OPEN: u64 = u64::MAX;

/// Collects lines in the order in which they end.
#[derive(Debug)]
pub(super) struct LineCollector {
    pub(super) max_lines: u64,
    pub(super) max_bytes: u64,
    pub(super) max_line_bytes: u64,
    /// The match around which long lines are cut.
    pub(super) pattern: Option<Pattern>,
    pub(super) lines: Vec<EndedLine>,
    /// Whether there was one more than the limits permit.
    pub(super) is_cut: bool,
    /// Of more lines, the last ones are kept: at least this many, at most twice as many.
    pub(super) keep_last: usize,
    /// Whether others were dropped for that.
    pub(super) has_dropped: bool,
    pub(super) matcher: BudgetedMatcher,
    pub(super) bytes: u64,
    /// Whether the lines that are visited have not ended, because nothing follows yet.
    pub(super) is_at_end: bool,
}

impl LineCollector {
    /// Collects everything.
    pub(super) const fn new(matcher: BudgetedMatcher) -> Self {
        Self {
            max_lines: u64::MAX,
            max_bytes: u64::MAX,
            max_line_bytes: u64::MAX,
            pattern: None,
            lines: Vec::new(),
            is_cut: false,
            keep_last: usize::MAX,
            has_dropped: false,
            matcher,
            bytes: 0,
            is_at_end: false,
        }
    }

    /// Collects the lines of a range, across gaps; with `open` also those that have not ended.
    /// Returns the gaps, and where the files are damaged.
    pub(super) fn collect(
        &mut self,
        snapshot: &JournalSnapshot<'_>,
        mut range: ScanRange<'_>,
        open: bool,
    ) -> Result<(Vec<Gap>, Option<u64>), SegmentError> {
        let matcher = self.matcher.clone();
        let mut gaps = Vec::new();
        loop {
            let mut scan = LineScanner::new(snapshot, range, &matcher);
            match scan.run(self)? {
                ScanEnd::Gap(gap) => {
                    self.end_open_lines(gap.from);
                    gaps.push(gap);
                    range.from = gap.to;
                }
                ScanEnd::Damaged(at) => return Ok((gaps, Some(at))),
                ScanEnd::Visitor => return Ok((gaps, None)),
                ScanEnd::End => {
                    if open {
                        self.is_at_end = true;
                        scan.find_open()?;
                        scan.flush(self)?;
                        self.end_open_lines(range.until);
                    }
                    return Ok((gaps, None));
                }
            }
        }
    }

    fn end_open_lines(&mut self, offset: u64) {
        for (end, _) in self.lines.iter_mut().rev() {
            if *end != OPEN {
                break;
            }
            *end = offset;
        }
    }

    /// The part of a line to return, and how many bytes are before it.
    fn part<'l>(&self, line: &ScannedLine<'l>) -> Result<(&'l [u8], usize), SegmentError> {
        let limit = usize::try_from(self.max_line_bytes).unwrap_or(usize::MAX);
        let from = match &self.pattern {
            Some(pattern) => start_around_match(pattern, &self.matcher, line.text, limit)?,
            None => 0,
        };
        let until = line.text.len().min(from.saturating_add(limit));
        Ok((&line.text[from..until], from))
    }
}

impl LineVisitor for LineCollector {
    fn visit_line(&mut self, line: &ScannedLine<'_>) -> Result<ScanControl, SegmentError> {
        let (part, skipped) = self.part(line)?;
        let len = part.len() as u64;
        let count = self.lines.len() as u64;
        let is_full = count >= self.max_lines || self.bytes.saturating_add(len) > self.max_bytes;
        // The part of a line before a gap has the number of the rest, and is returned with it; so
        // are those that have not ended, which have one position.
        let follows_open = self.lines.last().is_some_and(|(end, _)| *end == OPEN);
        let may_cut = line.terminated || (self.is_at_end && !follows_open);
        if is_full && count > 0 && may_cut {
            self.is_cut = true;
            return Ok(ScanControl::Stop);
        }
        self.bytes += len;
        let found = JournalLine {
            at: timestamp(line.at_ns),
            stream: line.stream,
            offset: line.offset,
            number: line.number,
            bytes: part.to_vec(),
            terminated: line.terminated,
            clipped: line.len - len,
            skipped: skipped as u64,
        };
        let end = if line.terminated { line.end } else { OPEN };
        self.lines.push((end, found));
        if self.lines.len() >= self.keep_last.saturating_mul(2) {
            self.lines.drain(..self.keep_last);
            self.has_dropped = true;
        }
        Ok(ScanControl::Continue)
    }
}

/// Numbers lines that end in this order after `from`.
pub(super) fn number_lines(
    snapshot: &JournalSnapshot<'_>,
    from: u64,
    lines: Vec<EndedLine>,
) -> Result<Vec<NumberedLine>, SegmentError> {
    let ends: Vec<u64> = lines.iter().map(|(end, _)| *end).collect();
    let counts = lines_before_each(snapshot, from, &ends)?;
    let mut numbered: Vec<NumberedLine> = Vec::with_capacity(lines.len());
    for ((end, line), ended) in lines.into_iter().zip(counts) {
        let number = match line.terminated {
            true => ended,
            false => ended + 1 + open_lines_before(snapshot, end, line.offset)?,
        };
        numbered.push(NumberedLine { number, line });
    }
    Ok(numbered)
}

/// Of the lines that are open at `end`, those that began before `offset`: they count first.
fn open_lines_before(
    snapshot: &JournalSnapshot<'_>,
    end: u64,
    offset: u64,
) -> Result<u64, SegmentError> {
    let mut count = 0;
    for stream in StreamSet::OUTPUT.iter() {
        let open = open_line_before(snapshot, end, stream, 0)?;
        count += u64::from(open.is_some_and(|line| line.offset < offset));
    }
    Ok(count)
}
