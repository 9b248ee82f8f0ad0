//! Adds lines to a page within its budgets.

use std::ops::Range;

use ostler_model::Cursor;

use crate::filter::{count_lines, count_open_lines, in_time, keep, matches};
use crate::line_range::LineRange;
use crate::pattern::BudgetedMatcher;
use crate::query::{Gap, GrepMode, JournalLine, LinePage, LineQuery, Unfinished};
use crate::read::timestamp;
use crate::scan::{LineScanner, LineVisitor, ScanControl, ScannedLine, Stop};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// Adds lines to a page, and counts those beyond its budgets.
pub(crate) struct LinePageBuilder<'q> {
    query: &'q LineQuery,
    watch: BudgetedMatcher,
    lines: Vec<JournalLine>,
    bytes: u64,
    /// The number of matches that may still be added or counted.
    head_left: u64,
    omitted: u64,
    /// The offset where the page was cut.
    cut: Option<u64>,
    /// The end of the last line added, or the beginning of the range.
    taken: u64,
    /// Whether lines beyond the page are counted by reading them.
    reads_on: bool,
    /// The number of matches still to be skipped.
    skip: u64,
    /// The number of matches in open lines that may still be added.
    open_left: u64,
    /// The number of open lines added. They come last, all or none: no cursor lies between them.
    open_taken: u64,
}

impl<'q> LinePageBuilder<'q> {
    pub(crate) fn new(query: &'q LineQuery, bounds: &LineRange, watch: BudgetedMatcher) -> Self {
        // With head and tail, the range already ends with the head.
        let head = query.head.filter(|_| query.tail.is_none());
        let filtered = query.grep.is_some()
            || query.since.is_some()
            || query.until.is_some()
            || head.is_some();
        Self {
            query,
            watch,
            lines: Vec::new(),
            bytes: 0,
            head_left: head.unwrap_or(u64::MAX),
            omitted: 0,
            cut: None,
            taken: bounds.from,
            reads_on: query.count_omitted && filtered,
            skip: bounds.skip,
            open_left: bounds.open_most,
            open_taken: 0,
        }
    }

    pub(crate) fn build(
        mut self,
        view: &JournalSnapshot<'_>,
        bounds: &LineRange,
        watch: &BudgetedMatcher,
    ) -> Result<LinePage, SegmentError> {
        let mut page = LinePage {
            lines: Vec::new(),
            next: Cursor {
                offset: bounds.end,
                event: self.query.from.unwrap_or_default().event,
            },
            gap: bounds.gap,
            omitted_lines: 0,
            more: false,
            damaged: None,
        };
        let mut at = *bounds;
        if let Some(first) = self.first_gap(view, &at)? {
            at.enter_gap(first.from, first.to);
            page.gap = at.gap;
        }
        loop {
            let mut scan = LineScanner::new(view, at.range(self.query, keep(self.query)), watch);
            match scan.run(&mut self)? {
                Stop::End => {
                    self.finish(&mut scan, bounds, &mut page)?;
                    break;
                }
                Stop::Sink => {
                    page.next.offset = self.taken;
                    break;
                }
                Stop::Damaged(offset) => {
                    page.damaged = Some(offset);
                    page.next.offset = offset.max(at.from);
                    if self.query.unfinished != Unfinished::Hide {
                        scan.flush(&mut self)?;
                    }
                    break;
                }
                Stop::Gap(gap) => {
                    at.from = gap.to;
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
                    if !self.reads_on {
                        break;
                    }
                }
            }
        }
        self.close(view, bounds, page)
    }

    /// Handles a gap right at the beginning.
    fn first_gap(
        &self,
        view: &JournalSnapshot<'_>,
        bounds: &LineRange,
    ) -> Result<Option<Gap>, SegmentError> {
        if bounds.from >= bounds.until || view.len() == 0 {
            return Ok(None);
        }
        let place = view.locate(bounds.from)?;
        let Some(segment) = view.sound_segment(place.slot)? else {
            return Ok(None);
        };
        let first = segment.record(place.record)?;
        Ok(first
            .filter(|record| record.offset > bounds.from)
            .map(|record| Gap {
                from: bounds.from,
                to: record.offset,
            }))
    }

    /// Adds open lines after the range was read.
    fn finish(
        &mut self,
        scan: &mut LineScanner<'_, '_, '_>,
        bounds: &LineRange,
        page: &mut LinePage,
    ) -> Result<(), SegmentError> {
        if !bounds.show_open {
            return Ok(());
        }
        scan.find_open()?;
        let shown = self.lines.len();
        scan.flush(self)?;
        let given = self.lines.len() > shown;
        if self.cut.is_none() && self.query.unfinished == Unfinished::Final {
            // One beyond the bytes: the open lines were returned finally.
            page.next.offset = bounds.until + u64::from(given);
        }
        Ok(())
    }

    fn close(
        mut self,
        view: &JournalSnapshot<'_>,
        bounds: &LineRange,
        mut page: LinePage,
    ) -> Result<LinePage, SegmentError> {
        if let Some(cut) = self.cut {
            page.next.offset = cut;
            page.more = true;
            if self.query.count_omitted && !self.reads_on {
                self.omitted += count_lines(view, bounds, cut, self.query)?;
                if bounds.show_open {
                    let open = count_open_lines(view, bounds, self.query)?;
                    self.omitted += open.min(self.open_left);
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
            && self.open_taken == 0
            && (lines >= self.query.max_lines || self.bytes + bytes > self.query.max_bytes)
    }

    fn take(&mut self, line: &ScannedLine<'_>, range: &Range<usize>) -> Result<(), SegmentError> {
        let content = self.query.grep.is_some() && self.query.grep_mode == GrepMode::Content;
        let whole = if content {
            range.len() as u64
        } else {
            line.len
        };
        let most = usize::try_from(self.query.max_line_bytes).unwrap_or(usize::MAX);
        let from = if content { 0 } else { self.window(line, most)? };
        let text = &line.text[range.clone()][from..];
        let bytes = text[..text.len().min(most)].to_vec();
        self.bytes += bytes.len() as u64;
        self.lines.push(JournalLine {
            at: timestamp(line.at_ns),
            stream: line.stream,
            offset: line.offset,
            number: line.number,
            clipped: whole - bytes.len() as u64,
            skipped: from as u64,
            bytes,
            terminated: line.terminated,
        });
        Ok(())
    }

    /// The beginning of the `most` bytes around the first match of a longer line.
    fn window(&self, line: &ScannedLine<'_>, most: usize) -> Result<usize, SegmentError> {
        let Some(pattern) = self.query.grep.as_ref() else {
            return Ok(0);
        };
        if !self.query.around_match || line.text.len() <= most {
            return Ok(0);
        }
        let found = self.watch.find_at(pattern, line.text, 0);
        let found = found.map_err(|error| SegmentError::Read(error.into()))?;
        let context = |found: Range<usize>| most.saturating_sub(found.len()) / 2;
        let from = found.map_or(0, |it| it.start.saturating_sub(context(it)));
        Ok(from.min(line.text.len() - most))
    }
}

impl LineVisitor for LinePageBuilder<'_> {
    fn line(&mut self, line: &ScannedLine<'_>) -> Result<ScanControl, SegmentError> {
        if !in_time(self.query, line) {
            return Ok(ScanControl::Continue);
        }
        if self.head_left == 0 {
            return Ok(ScanControl::Stop);
        }
        let mut matches = matches(self.query, line, &self.watch)?;
        if !line.terminated {
            matches.truncate(usize::try_from(self.open_left).unwrap_or(usize::MAX));
            self.open_left -= matches.len() as u64;
        }
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
            self.cut = Some(self.taken);
            if !self.reads_on {
                return Ok(ScanControl::Stop);
            }
        }
        for range in &matches {
            if self.head_left == 0 {
                break;
            }
            self.head_left -= 1;
            if self.cut.is_some()
                || self.is_full((range.len() as u64).min(self.query.max_line_bytes))
            {
                self.omitted += 1;
            } else {
                self.take(line, range)?;
            }
        }
        if !line.terminated {
            self.open_taken += u64::from(self.cut.is_none());
        } else if self.cut.is_none() {
            self.taken = line.end;
        }
        Ok(ScanControl::Continue)
    }

    fn block(&mut self, _at_ns: i64) -> ScanControl {
        if self.head_left == 0 {
            ScanControl::Stop
        } else {
            ScanControl::Continue
        }
    }
}
