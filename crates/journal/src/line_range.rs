//! The range in which lines are searched: position, time, head and tail.

use crate::filter::{MatchCounter, kept_line_bytes, nanoseconds};
use crate::line_start;
use crate::pattern::BudgetedMatcher;
use crate::query::{Gap, LineQuery, OpenLineMode, StreamSet};
use crate::record_iter::{BackwardRecords, RecordBlock};
use crate::scan::{LineScanner, ScanEnd, ScanRange};
use crate::segment::SegmentError;
use crate::snapshot::{JournalSnapshot, RecordPosition};

/// The range of offsets in which lines may end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineRange {
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) gap: Option<Gap>,
    /// Whether the range includes the end of the journal, so that open lines may be shown.
    pub(crate) to_end: bool,
    /// The offset at which a page that reached the end continues: beyond the bytes where the open
    /// lines were returned finally.
    pub(crate) end: u64,
    /// Whether open lines are to be shown.
    pub(crate) show_open: bool,
    /// The number of matches at the beginning of the range to skip.
    pub(crate) skip: u64,
    /// The number of matches in open lines that the head allows.
    pub(crate) open_limit: u64,
}

impl LineRange {
    pub(crate) fn resolve(
        snapshot: &JournalSnapshot<'_>,
        query: &LineQuery,
    ) -> Result<Self, SegmentError> {
        let start = snapshot.start()?;
        let requested = query.from.map_or(0, |cursor| cursor.offset);
        let until = query
            .until_cursor
            .map_or(snapshot.end, |cursor| cursor.offset.min(snapshot.end));
        let to_end = query
            .until_cursor
            .is_none_or(|cursor| cursor.offset >= snapshot.end);
        let mut bounds = Self {
            from: requested,
            until,
            gap: None,
            to_end,
            end: requested.max(until),
            show_open: to_end
                && requested <= snapshot.end
                && query.unfinished != OpenLineMode::Hide,
            skip: 0,
            open_limit: u64::MAX,
        };
        if requested < start {
            bounds.enter_gap(requested, start);
        }
        if let Some(since) = query.since {
            let begin = offset_at(snapshot, nanoseconds(since))?;
            bounds.from = bounds.from.max(begin);
        }
        if let Some(until) = query.until {
            bounds.end_before(snapshot, query, nanoseconds(until).saturating_add(1))?;
        }
        Ok(bounds)
    }

    /// Excludes everything that ends at or after `end`.
    fn end_at(&mut self, snapshot: &JournalSnapshot<'_>, end: u64) {
        if end < self.until {
            self.until = end;
            self.end = self.end.min(end);
            self.to_end = end >= snapshot.end;
            self.show_open &= self.to_end;
        }
    }

    /// Excludes what was read at or after this time, unless a line continues across it: then the
    /// page builder must read on to its end.
    fn end_before(
        &mut self,
        snapshot: &JournalSnapshot<'_>,
        query: &LineQuery,
        at_ns: i64,
    ) -> Result<(), SegmentError> {
        let end = offset_at(snapshot, at_ns)?;
        for stream in query.streams.iter() {
            if end < snapshot.end
                && line_start::open_line_before(snapshot, end, stream, 0)?.is_some()
            {
                return Ok(());
            }
        }
        self.end_at(snapshot, end.max(self.from));
        Ok(())
    }

    pub(crate) fn enter_gap(&mut self, from: u64, to: u64) {
        let from = self.gap.map_or(from, |gap| gap.from);
        self.gap = Some(Gap { from, to });
        self.from = self.from.max(to);
    }

    pub(crate) const fn scan_range<'q>(&self, query: &'q LineQuery, keep: usize) -> ScanRange<'q> {
        ScanRange {
            from: self.from,
            until: self.until,
            streams: query.streams,
            pattern: query.grep.as_ref(),
            keep,
        }
    }

    /// Moves the end after the first `head` matches.
    pub(crate) fn seek_head(
        &mut self,
        snapshot: &JournalSnapshot<'_>,
        query: &LineQuery,
        head: u64,
        matcher: &BudgetedMatcher,
    ) -> Result<(), SegmentError> {
        let mut counter = MatchCounter::new(query, matcher.clone());
        counter.stop_at = Some(head);
        let mut scan = LineScanner::new(
            snapshot,
            self.scan_range(query, kept_line_bytes(query)),
            matcher,
        );
        if scan.run(&mut counter)? == ScanEnd::Visitor {
            self.end_at(snapshot, counter.last.max(self.from));
        }
        self.open_limit = head.saturating_sub(counter.count);
        Ok(())
    }

    /// Moves the beginning so that `tail` matches follow.
    pub(crate) fn seek_tail(
        &mut self,
        snapshot: &JournalSnapshot<'_>,
        query: &LineQuery,
        tail: u64,
        matcher: &BudgetedMatcher,
    ) -> Result<(), SegmentError> {
        let open = if self.show_open {
            self.count_open(snapshot, query, matcher)?
        } else {
            0
        };
        let closed_lines = tail.saturating_sub(open);
        self.skip = open.saturating_sub(tail);
        let is_unfiltered = query.grep.is_none() && query.since.is_none() && query.until.is_none();
        let mut backward = BackwardRecords::new(snapshot, position_before(snapshot, self.until)?);
        let mut block = RecordBlock::default();
        let mut remaining = closed_lines;
        let mut upper = self.until;
        while upper > self.from {
            if !backward.previous_block(&mut block)? {
                self.start_tail_at(upper);
                return Ok(());
            }
            let lower = block.first_offset().max(self.from);
            let part = Self {
                from: lower,
                until: upper,
                ..*self
            };
            let result = if is_unfiltered {
                nth_newline_back(&block, &part, query.streams, remaining)
            } else {
                nth_match_back(snapshot, query, &part, remaining, matcher)?
            };
            match result {
                SeekResult::At(from, skip) => {
                    self.from = from;
                    self.skip += skip;
                    self.gap = None;
                    return Ok(());
                }
                SeekResult::Fewer(count) => remaining -= count,
            }
            upper = lower;
        }
        Ok(())
    }

    /// Ends the tail at a gap or at damage.
    fn start_tail_at(&mut self, from: u64) {
        if from > self.from {
            self.enter_gap(self.from, from);
        }
    }

    fn count_open(
        &self,
        snapshot: &JournalSnapshot<'_>,
        query: &LineQuery,
        matcher: &BudgetedMatcher,
    ) -> Result<u64, SegmentError> {
        let at_end = Self {
            from: self.until,
            ..*self
        };
        let mut counter = MatchCounter::new(query, matcher.clone());
        let mut scan = LineScanner::new(
            snapshot,
            at_end.scan_range(query, kept_line_bytes(query)),
            matcher,
        );
        scan.find_open()?;
        scan.flush(&mut counter)?;
        Ok(counter.count.min(self.open_limit))
    }
}

/// The offset of the first record read at or after this time; the end if there is none.
pub(crate) fn offset_at(snapshot: &JournalSnapshot<'_>, at_ns: i64) -> Result<u64, SegmentError> {
    if snapshot.len() == 0 {
        return Ok(snapshot.end);
    }
    let position = snapshot.locate_time(at_ns)?;
    let record = match snapshot.valid_segment(position.slot)? {
        Some(segment) => segment.record(position.record)?,
        None => None,
    };
    Ok(record.map_or(snapshot.end, |record| record.offset.max(snapshot.floor)))
}

/// The position after the last record that begins before `offset`.
fn position_before(
    snapshot: &JournalSnapshot<'_>,
    offset: u64,
) -> Result<RecordPosition, SegmentError> {
    let position = snapshot.locate(offset)?;
    let inside = match snapshot.len() {
        0 => false,
        _ => match snapshot.valid_segment(position.slot)? {
            Some(segment) => segment
                .record(position.record)?
                .is_some_and(|record| record.offset < offset),
            None => false,
        },
    };
    Ok(RecordPosition {
        record: position.record + u64::from(inside),
        ..position
    })
}

/// The result of a backward search in one block.
enum SeekResult {
    /// The wanted matches and this many more before them end at or after this offset.
    At(u64, u64),
    /// There are only this many matches.
    Fewer(u64),
}

/// Searches backward for the newline before the last `closed_lines` ones.
fn nth_newline_back(
    block: &RecordBlock,
    part: &LineRange,
    streams: StreamSet,
    target: u64,
) -> SeekResult {
    let mut count = 0;
    for run in block
        .runs()
        .rev()
        .filter(|run| streams.contains(run.stream))
    {
        let base = run.records[0].offset;
        let from = crate::index::relative_offset(base, part.from).min(run.bytes.len());
        let until = crate::index::relative_offset(base, part.until).min(run.bytes.len());
        for newline in memchr::memrchr_iter(b'\n', run.bytes.get(from..until).unwrap_or_default()) {
            if count == target {
                return SeekResult::At(base + (from + newline) as u64 + 1, 0);
            }
            count += 1;
        }
    }
    SeekResult::Fewer(count)
}

/// Searches backward for the end of the match before the last `closed_lines` ones.
fn nth_match_back(
    snapshot: &JournalSnapshot<'_>,
    query: &LineQuery,
    subrange: &LineRange,
    target: u64,
    matcher: &BudgetedMatcher,
) -> Result<SeekResult, SegmentError> {
    let mut counter = MatchCounter::new(query, matcher.clone());
    counter.ends = Some(Vec::new());
    LineScanner::new(
        snapshot,
        subrange.scan_range(query, kept_line_bytes(query)),
        matcher,
    )
    .run(&mut counter)?;
    let ends = counter.ends.unwrap_or_default();
    let total = counter.count;
    let mut counted = 0;
    for (end, matches) in ends.iter().rev() {
        if counted + matches > target {
            return Ok(if counted < target {
                SeekResult::At(end - 1, counted + matches - target)
            } else {
                SeekResult::At(*end, 0)
            });
        }
        counted += matches;
    }
    Ok(SeekResult::Fewer(total))
}
