//! Adds lines to a page within its budgets.

use std::ops::Range;

use ostler_model::Cursor;

use crate::filter::{
    count_lines, count_open_lines, find_matches, is_in_time_range, kept_line_bytes, plain_content,
    start_around_match,
};
use crate::line_range::LineRange;
use crate::pattern::BudgetedMatcher;
use crate::query::{Gap, GrepMode, JournalLine, LinePage, LineQuery, OpenLineMode};
use crate::read::timestamp;
use crate::scan::{LineScanner, LineVisitor, ScanControl, ScanEnd, ScannedLine};
use crate::segment::SegmentError;
use crate::snapshot::{JournalSnapshot, follows};

/// Adds lines to a page, and counts those beyond its budgets.
pub(crate) struct LinePageBuilder<'q> {
    query: &'q LineQuery,
    matcher: BudgetedMatcher,
    lines: Vec<JournalLine>,
    bytes: u64,
    /// The number of matches that may still be added or counted.
    head_remaining: u64,
    omitted: u64,
    /// The offset where the page was cut.
    cut: Option<u64>,
    /// The end of the last line added, or the beginning of the range.
    consumed_to: u64,
    /// Whether lines beyond the page are counted by reading them.
    counts_by_reading: bool,
    /// The number of matches still to be skipped.
    skip: u64,
    /// The number of matches in open lines that may still be added.
    open_remaining: u64,
    /// The number of open lines added. They come last, all or none: no cursor is between them.
    open_added: u64,
}

impl<'q> LinePageBuilder<'q> {
    pub(crate) fn new(query: &'q LineQuery, range: &LineRange, matcher: BudgetedMatcher) -> Self {
        // With head and tail, the range already ends with the head.
        let head = query.head.filter(|_| query.tail.is_none());
        let filtered = query.grep.is_some()
            || query.since.is_some()
            || query.until.is_some()
            || head.is_some();
        Self {
            query,
            matcher,
            lines: Vec::new(),
            bytes: 0,
            head_remaining: head.unwrap_or(u64::MAX),
            omitted: 0,
            cut: None,
            consumed_to: range.from,
            counts_by_reading: query.count_omitted && filtered,
            skip: range.skip,
            open_remaining: range.open_limit,
            open_added: 0,
        }
    }

    pub(crate) fn build(
        mut self,
        snapshot: &JournalSnapshot<'_>,
        range: &LineRange,
        matcher: &BudgetedMatcher,
    ) -> Result<LinePage, SegmentError> {
        let mut page = LinePage {
            lines: Vec::new(),
            next: Cursor {
                offset: range.end,
                event: self.query.from.unwrap_or_default().event,
            },
            gap: range.gap,
            omitted_lines: 0,
            more: false,
            damaged: None,
        };
        let mut current_range = *range;
        if let Some(first) = self.leading_gap(snapshot, &current_range)? {
            current_range.enter_gap(first.from, first.to);
            page.gap = current_range.gap;
        }
        loop {
            let mut scan = LineScanner::new(
                snapshot,
                current_range.scan_range(self.query, kept_line_bytes(self.query)),
                matcher,
            );
            match scan.run(&mut self)? {
                ScanEnd::End => {
                    self.visit_open_lines(&mut scan, range, &mut page)?;
                    break;
                }
                ScanEnd::Visitor => {
                    page.next.offset = self.consumed_to;
                    break;
                }
                ScanEnd::Damaged(offset) => {
                    page.damaged = Some(offset);
                    page.next.offset = offset.max(current_range.from);
                    if self.query.unfinished != OpenLineMode::Hide {
                        scan.flush(&mut self)?;
                    }
                    break;
                }
                ScanEnd::Gap(gap) => {
                    current_range.from = gap.to;
                    if self.cut.is_none() && self.lines.is_empty() {
                        // Nothing came before: the page may begin after the gap.
                        page.gap = Some(Gap {
                            from: page.gap.map_or(gap.from, |one| one.from),
                            to: gap.to,
                        });
                        continue;
                    }
                    if self.cut.is_none() {
                        page.next.offset = gap.from;
                        page.more = true;
                        break;
                    }
                    if !self.counts_by_reading {
                        break;
                    }
                }
            }
        }
        self.finish_page(snapshot, range, page)
    }

    /// Handles a gap right at the beginning.
    fn leading_gap(
        &self,
        snapshot: &JournalSnapshot<'_>,
        range: &LineRange,
    ) -> Result<Option<Gap>, SegmentError> {
        if range.from >= range.until || snapshot.len() == 0 {
            return Ok(None);
        }
        let position = snapshot.locate(range.from)?;
        let Some(segment) = snapshot.valid_segment(position.slot)? else {
            return Ok(None);
        };
        if !follows(segment, position.record)? {
            // Damaged: the scan finds where it continues.
            return Ok(None);
        }
        let first = segment.record(position.record)?;
        Ok(first
            .filter(|record| record.offset > range.from)
            .map(|record| Gap {
                from: range.from,
                to: record.offset,
            }))
    }

    /// Adds open lines after the range was read.
    fn visit_open_lines(
        &mut self,
        scan: &mut LineScanner<'_, '_, '_>,
        range: &LineRange,
        page: &mut LinePage,
    ) -> Result<(), SegmentError> {
        if !range.show_open {
            return Ok(());
        }
        scan.find_open()?;
        let before = self.lines.len();
        scan.flush(self)?;
        let has_open_lines = self.lines.len() > before;
        if self.cut.is_none() && self.query.unfinished == OpenLineMode::Final {
            // One beyond the bytes: the open lines were returned finally.
            page.next.offset = range.until + u64::from(has_open_lines);
        }
        Ok(())
    }

    fn finish_page(
        mut self,
        snapshot: &JournalSnapshot<'_>,
        range: &LineRange,
        mut page: LinePage,
    ) -> Result<LinePage, SegmentError> {
        if let Some(cut) = self.cut {
            page.next.offset = cut;
            page.more = true;
            if self.query.count_omitted && !self.counts_by_reading {
                self.omitted += count_lines(snapshot, cut..range.until, self.query)?;
                if range.show_open {
                    let open = count_open_lines(snapshot, range.until, self.query)?;
                    self.omitted += open.min(self.open_remaining);
                }
            }
        }
        page.omitted_lines = self.omitted;
        page.lines = self.lines;
        page.lines.sort_by_key(|line| line.offset);
        Ok(page)
    }

    /// Whether a line of this many bytes exceeds the budget.
    const fn is_full(&self, bytes: u64) -> bool {
        let lines = self.lines.len() as u64;
        lines > 0
            && self.open_added == 0
            && (lines >= self.query.max_lines || self.bytes + bytes > self.query.max_bytes)
    }

    fn push_line(
        &mut self,
        line: &ScannedLine<'_>,
        range: &Range<usize>,
    ) -> Result<(), SegmentError> {
        let content = self.query.grep.is_some() && self.query.grep_mode == GrepMode::Content;
        let full_len = if content {
            range.len() as u64
        } else {
            line.len
        };
        let max_bytes = usize::try_from(self.query.max_line_bytes).unwrap_or(usize::MAX);
        let from = if content {
            0
        } else {
            self.clip_start(line, max_bytes)?
        };
        let text = &line.text[range.clone()][from..];
        let bytes = text[..text.len().min(max_bytes)].to_vec();
        self.bytes += bytes.len() as u64;
        self.lines.push(JournalLine {
            at: timestamp(line.at_ns),
            stream: line.stream,
            offset: line.offset,
            number: line.number,
            clipped: full_len - bytes.len() as u64,
            skipped: from as u64,
            bytes,
            terminated: line.terminated,
        });
        Ok(())
    }

    /// The beginning of the `max_bytes` bytes around the first match of a longer line.
    fn clip_start(&self, line: &ScannedLine<'_>, max_bytes: usize) -> Result<usize, SegmentError> {
        match self.query.grep.as_ref().filter(|_| self.query.around_match) {
            Some(pattern) => start_around_match(pattern, &self.matcher, line.text, max_bytes),
            None => Ok(0),
        }
    }
}

impl LineVisitor for LinePageBuilder<'_> {
    fn visit_line(&mut self, line: &ScannedLine<'_>) -> Result<ScanControl, SegmentError> {
        if !is_in_time_range(self.query, line) {
            return Ok(ScanControl::Continue);
        }
        if self.head_remaining == 0 {
            return Ok(ScanControl::Stop);
        }
        let plain = plain_content(self.query, line, &self.matcher)?;
        let line = &line.with_text(plain.as_deref());
        let mut matches = find_matches(self.query, line, &self.matcher)?;
        if !line.terminated {
            matches.truncate(usize::try_from(self.open_remaining).unwrap_or(usize::MAX));
        }
        let found = matches.len() as u64;
        let skipped = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(matches.len());
        matches.drain(..skipped);
        self.skip -= skipped as u64;
        let first = matches.first().map_or(0, |range| range.len() as u64);
        if self.cut.is_none()
            && !matches.is_empty()
            && self.is_full(first.min(self.query.max_line_bytes))
        {
            self.cut = Some(self.consumed_to);
            if !self.counts_by_reading {
                // Open lines that are not added are counted at the end, this one with them.
                return Ok(ScanControl::Stop);
            }
        }
        if !line.terminated {
            self.open_remaining -= found;
        }
        for range in &matches {
            if self.head_remaining == 0 {
                break;
            }
            self.head_remaining -= 1;
            if self.cut.is_some()
                || self.is_full((range.len() as u64).min(self.query.max_line_bytes))
            {
                self.omitted += 1;
            } else {
                self.push_line(line, range)?;
            }
        }
        if !line.terminated {
            self.open_added += u64::from(self.cut.is_none());
        } else if self.cut.is_none() {
            self.consumed_to = line.end;
        }
        Ok(ScanControl::Continue)
    }

    fn visit_block(&mut self, _at_ns: i64) -> ScanControl {
        if self.head_remaining == 0 {
            ScanControl::Stop
        } else {
            ScanControl::Continue
        }
    }
}
