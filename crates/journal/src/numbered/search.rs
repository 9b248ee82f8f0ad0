//! Searches for lines with a match, in either direction.

use crate::filter::MatchCounter;
use crate::pattern::BudgetedMatcher;
use crate::query::{LineQuery, STREAMS};
use crate::scan::{LineScanner, MATCH_BYTES, ScanEnd, ScanRange};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

use super::line_count::{lines_before, offset_after_line};
use super::page::{LineCollector, LineExtent, number_lines};
use super::query::{LineSearch, SearchPage, SearchedLines};

/// Answers a search on one snapshot.
pub(crate) fn search(
    snapshot: &JournalSnapshot<'_>,
    search: &LineSearch,
) -> Result<SearchPage, SegmentError> {
    let extent = LineExtent::of(snapshot)?;
    let first = search.from.max(extent.first_kept);
    let searcher = Searcher {
        snapshot,
        search,
        extent,
        start: snapshot.start()?,
        matcher: BudgetedMatcher::new(search.pattern.budget()),
    };
    match search.lines {
        SearchedLines::First(limit) => searcher.forward(first, limit),
        SearchedLines::Last(limit) => searcher.backward(limit),
        SearchedLines::Count => searcher.count(first),
    }
}

struct Searcher<'v, 'd> {
    snapshot: &'v JournalSnapshot<'d>,
    search: &'v LineSearch,
    extent: LineExtent,
    /// The offset of the oldest byte kept.
    start: u64,
    matcher: BudgetedMatcher,
}

impl Searcher<'_, '_> {
    fn page(&self, searched_bytes: u64) -> SearchPage {
        SearchPage {
            first_kept: self.extent.first_kept,
            ended: self.extent.ended,
            matches: Vec::new(),
            count: 0,
            next: None,
            searched_bytes,
            damaged: None,
        }
    }

    fn range(&self, from: u64, until: u64) -> ScanRange<'_> {
        ScanRange {
            from,
            until,
            streams: self.search.streams,
            pattern: Some(&self.search.pattern),
            keep: MATCH_BYTES,
        }
    }

    fn collector(&self) -> LineCollector {
        LineCollector {
            max_line_bytes: self.search.max_line_bytes,
            pattern: Some(self.search.pattern.clone()),
            ..LineCollector::new(self.matcher.clone())
        }
    }

    /// The end of the range that begins at `from` with the line of number `first`, which is in it
    /// whole: each search gets on by a line at least.
    fn range_end(&self, from: u64, first: u64) -> Result<u64, SegmentError> {
        let end = from.saturating_add(self.search.max_bytes);
        let line_end = offset_after_line(self.snapshot, first)?;
        Ok(end.max(line_end).min(self.snapshot.end))
    }

    /// The line to go on with after a range that began with the line `first`. Beside damage, counts
    /// may be too low; a search gets on all the same.
    fn next_after(&self, until: u64, first: u64) -> Result<u64, SegmentError> {
        Ok(lines_before(self.snapshot, until)?
            .max(first)
            .saturating_add(1))
    }

    fn forward(&self, first: u64, limit: u64) -> Result<SearchPage, SegmentError> {
        let from = offset_after_line(self.snapshot, first - 1)?;
        let until = self.range_end(from, first)?;
        let is_last = until == self.snapshot.end;
        let mut collector = LineCollector {
            max_lines: limit.max(1),
            ..self.collector()
        };
        let (_gaps, damaged) =
            collector.collect(self.snapshot, self.range(from, until), is_last)?;
        let is_cut = collector.is_cut;
        let matches = number_lines(self.snapshot, from, collector.lines)?;
        let next = match matches.last().filter(|_| is_cut) {
            Some(last) => Some(last.number.max(first).saturating_add(1)),
            None if is_last => None,
            None => Some(self.next_after(until, first)?),
        };
        Ok(SearchPage {
            count: matches.len() as u64,
            matches,
            next,
            damaged,
            ..self.page(until - from)
        })
    }

    fn backward(&self, limit: u64) -> Result<SearchPage, SegmentError> {
        let is_from_end = self.search.from > self.extent.ended;
        let until = match is_from_end {
            true => self.snapshot.end,
            false => offset_after_line(self.snapshot, self.search.from)?,
        };
        let from = until.saturating_sub(self.search.max_bytes.max(1));
        let from = from.max(self.start).min(until);
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let mut collector = LineCollector {
            // Those that have not ended are one position: they are returned together.
            keep_last: limit.max(STREAMS.len()),
            ..self.collector()
        };
        let (_gaps, damaged) =
            collector.collect(self.snapshot, self.range(from, until), is_from_end)?;
        let ended = collector
            .lines
            .iter()
            .rposition(|(_, line)| line.terminated);
        let open = collector.lines.len() - ended.map_or(0, |last| last + 1);
        let surplus = collector.lines.len().saturating_sub(limit.max(open));
        let has_more = surplus > 0 || collector.has_dropped;
        collector.lines.drain(..surplus);
        let matches = number_lines(self.snapshot, from, collector.lines)?;
        let next = match matches.first().filter(|_| has_more) {
            Some(first) => Some(first.number.saturating_sub(1)),
            None if from == self.start => None,
            None => Some(lines_before(self.snapshot, from)?),
        };
        Ok(SearchPage {
            count: matches.len() as u64,
            matches,
            next: next
                .map(|next| next.min(self.search.from.saturating_sub(1)))
                .filter(|next| *next >= self.extent.first_kept),
            damaged,
            ..self.page(until - from)
        })
    }

    fn count(&self, first: u64) -> Result<SearchPage, SegmentError> {
        let from = offset_after_line(self.snapshot, first - 1)?;
        let until = self.range_end(from, first)?;
        let is_last = until == self.snapshot.end;
        let query = LineQuery::default();
        let mut counter = MatchCounter::new(&query, self.matcher.clone());
        let mut range = self.range(from, until);
        let mut damaged = None;
        loop {
            let mut scan = LineScanner::new(self.snapshot, range, &self.matcher);
            match scan.run(&mut counter)? {
                ScanEnd::Gap(gap) => range.from = gap.to,
                ScanEnd::End if is_last => {
                    scan.find_open()?;
                    scan.flush(&mut counter)?;
                    break;
                }
                ScanEnd::Damaged(at) => {
                    damaged = Some(at);
                    break;
                }
                ScanEnd::End | ScanEnd::Visitor => break,
            }
        }
        let next = match is_last {
            true => None,
            false => Some(self.next_after(until, first)?),
        };
        Ok(SearchPage {
            count: counter.count,
            next,
            damaged,
            ..self.page(until - from)
        })
    }
}
