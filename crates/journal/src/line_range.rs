//! The range in which lines are searched: position, time, head and tail.

use crate::filter::{Counter, keep, nanoseconds};
use crate::line_start;
use crate::pattern::BudgetedMatcher;
use crate::query::{Gap, LineQuery, StreamSet, Unfinished};
use crate::record_iter::{BackwardRecords, RecordBlock};
use crate::scan::{LineScanner, ScanRange, Stop};
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
    pub(crate) open_most: u64,
}

impl LineRange {
    pub(crate) fn of(view: &JournalSnapshot<'_>, query: &LineQuery) -> Result<Self, SegmentError> {
        let start = view.start()?;
        let asked = query.from.map_or(0, |cursor| cursor.offset);
        let until = query
            .until_cursor
            .map_or(view.end, |cursor| cursor.offset.min(view.end));
        let to_end = query
            .until_cursor
            .is_none_or(|cursor| cursor.offset >= view.end);
        let mut bounds = Self {
            from: asked,
            until,
            gap: None,
            to_end,
            end: asked.max(until),
            show_open: to_end && asked <= view.end && query.unfinished != Unfinished::Hide,
            skip: 0,
            open_most: u64::MAX,
        };
        if asked < start {
            bounds.enter_gap(asked, start);
        }
        if let Some(since) = query.since {
            let begin = offset_at(view, nanoseconds(since))?;
            bounds.from = bounds.from.max(begin);
        }
        if let Some(until) = query.until {
            bounds.end_before(view, query, nanoseconds(until).saturating_add(1))?;
        }
        Ok(bounds)
    }

    /// Excludes everything that ends at or after `end`.
    fn end_at(&mut self, view: &JournalSnapshot<'_>, end: u64) {
        if end < self.until {
            self.until = end;
            self.end = self.end.min(end);
            self.to_end = end >= view.end;
            self.show_open &= self.to_end;
        }
    }

    /// Excludes what was read at or after this time, unless a line continues across it: then the
    /// page builder must read on to its end.
    fn end_before(
        &mut self,
        view: &JournalSnapshot<'_>,
        query: &LineQuery,
        at_ns: i64,
    ) -> Result<(), SegmentError> {
        let end = offset_at(view, at_ns)?;
        for stream in query.streams.iter() {
            if end < view.end && line_start::open_before(view, end, stream, 0)?.is_some() {
                return Ok(());
            }
        }
        self.end_at(view, end.max(self.from));
        Ok(())
    }

    pub(crate) fn enter_gap(&mut self, from: u64, to: u64) {
        let from = self.gap.map_or(from, |gap| gap.from);
        self.gap = Some(Gap { from, to });
        self.from = self.from.max(to);
    }

    pub(crate) const fn range<'q>(&self, query: &'q LineQuery, keep: usize) -> ScanRange<'q> {
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
        view: &JournalSnapshot<'_>,
        query: &LineQuery,
        head: u64,
        watch: &BudgetedMatcher,
    ) -> Result<(), SegmentError> {
        let mut counter = Counter::new(query, watch.clone());
        counter.stop_at = Some(head);
        let mut scan = LineScanner::new(view, self.range(query, keep(query)), watch);
        if scan.run(&mut counter)? == Stop::Sink {
            self.end_at(view, counter.last.max(self.from));
        }
        self.open_most = head.saturating_sub(counter.count);
        Ok(())
    }

    /// Moves the beginning so that `tail` matches follow.
    pub(crate) fn seek_tail(
        &mut self,
        view: &JournalSnapshot<'_>,
        query: &LineQuery,
        tail: u64,
        watch: &BudgetedMatcher,
    ) -> Result<(), SegmentError> {
        let open = if self.show_open {
            self.count_open(view, query, watch)?
        } else {
            0
        };
        let wanted = tail.saturating_sub(open);
        self.skip = open.saturating_sub(tail);
        let plain = query.grep.is_none() && query.since.is_none() && query.until.is_none();
        let mut back = BackwardRecords::new(view, after(view, self.until)?);
        let mut block = RecordBlock::default();
        let mut left = wanted;
        let mut upper = self.until;
        while upper > self.from {
            if !back.step(&mut block)? {
                self.stop_tail_at(upper);
                return Ok(());
            }
            let lower = block.base().max(self.from);
            let part = Self {
                from: lower,
                until: upper,
                ..*self
            };
            let found = if plain {
                nth_newline_back(&block, &part, query.streams, left)
            } else {
                nth_match_back(view, query, &part, left, watch)?
            };
            match found {
                Found::At(from, skip) => {
                    self.from = from;
                    self.skip += skip;
                    self.gap = None;
                    return Ok(());
                }
                Found::Fewer(count) => left -= count,
            }
            upper = lower;
        }
        Ok(())
    }

    /// Ends the tail at a gap or at damage.
    fn stop_tail_at(&mut self, from: u64) {
        if from > self.from {
            self.enter_gap(self.from, from);
        }
    }

    fn count_open(
        &self,
        view: &JournalSnapshot<'_>,
        query: &LineQuery,
        watch: &BudgetedMatcher,
    ) -> Result<u64, SegmentError> {
        let at_end = Self {
            from: self.until,
            ..*self
        };
        let mut counter = Counter::new(query, watch.clone());
        let mut scan = LineScanner::new(view, at_end.range(query, keep(query)), watch);
        scan.find_open()?;
        scan.flush(&mut counter)?;
        Ok(counter.count.min(self.open_most))
    }
}

/// The offset of the first record read at or after this time; the end where there is none.
fn offset_at(view: &JournalSnapshot<'_>, at_ns: i64) -> Result<u64, SegmentError> {
    if view.len() == 0 {
        return Ok(view.end);
    }
    let place = view.locate_time(at_ns)?;
    let record = match view.sound_segment(place.slot)? {
        Some(segment) => segment.record(place.record)?,
        None => None,
    };
    Ok(record.map_or(view.end, |record| record.offset.max(view.floor)))
}

/// The position after the last record that begins before `offset`.
fn after(view: &JournalSnapshot<'_>, offset: u64) -> Result<RecordPosition, SegmentError> {
    let place = view.locate(offset)?;
    let inside = match view.len() {
        0 => false,
        _ => match view.sound_segment(place.slot)? {
            Some(segment) => segment
                .record(place.record)?
                .is_some_and(|record| record.offset < offset),
            None => false,
        },
    };
    Ok(RecordPosition {
        record: place.record + u64::from(inside),
        ..place
    })
}

/// The result of a backward search in one block.
enum Found {
    /// The wanted matches and this many more before them end at or after this offset.
    At(u64, u64),
    /// There are only this many matches.
    Fewer(u64),
}

/// Searches backward for the newline before the last `wanted` ones.
fn nth_newline_back(
    block: &RecordBlock,
    part: &LineRange,
    streams: StreamSet,
    wanted: u64,
) -> Found {
    let mut count = 0;
    for run in block
        .runs()
        .rev()
        .filter(|run| streams.contains(run.stream))
    {
        let base = run.records[0].offset;
        let from = crate::record_iter::within(base, part.from).min(run.bytes.len());
        let until = crate::record_iter::within(base, part.until).min(run.bytes.len());
        for newline in memchr::memrchr_iter(b'\n', run.bytes.get(from..until).unwrap_or_default()) {
            if count == wanted {
                return Found::At(base + (from + newline) as u64 + 1, 0);
            }
            count += 1;
        }
    }
    Found::Fewer(count)
}

/// Searches backward for the end of the match before the last `wanted` ones.
fn nth_match_back(
    view: &JournalSnapshot<'_>,
    query: &LineQuery,
    part: &LineRange,
    wanted: u64,
    watch: &BudgetedMatcher,
) -> Result<Found, SegmentError> {
    let mut counter = Counter::new(query, watch.clone());
    counter.ends = Some(Vec::new());
    LineScanner::new(view, part.range(query, keep(query)), watch).run(&mut counter)?;
    let ends = counter.ends.unwrap_or_default();
    let total = counter.count;
    let mut kept = 0;
    for (end, matches) in ends.iter().rev() {
        if kept + matches > wanted {
            return Ok(if kept < wanted {
                Found::At(end - 1, kept + matches - wanted)
            } else {
                Found::At(*end, 0)
            });
        }
        kept += matches;
    }
    Ok(Found::Fewer(total))
}
