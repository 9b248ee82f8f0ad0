//! Filtering and counting of lines in a range.

use std::ops::Range;

use crate::index::StreamCounters;
use crate::pattern::{BudgetedMatcher, Pattern};
use crate::query::{GrepMode, LineQuery, StreamSet, stream_code};
use crate::scan::{LineVisitor, MATCH_BYTES, ScanControl, ScannedLine};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;
use ostler_model::StreamName;

/// The number of bytes of a line to buffer: for the result, or to match a pattern against.
pub(crate) fn kept_line_bytes(query: &LineQuery) -> usize {
    let returned = usize::try_from(query.max_line_bytes).unwrap_or(usize::MAX);
    if query.grep.is_some() {
        MATCH_BYTES.max(returned)
    } else {
        returned
    }
}

pub(crate) fn nanoseconds(at: ostler_model::Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(if at.as_nanosecond() < 0 {
        i64::MIN
    } else {
        i64::MAX
    })
}

/// Whether a line's time is in the requested range.
pub(crate) fn is_in_time_range(query: &LineQuery, line: &ScannedLine<'_>) -> bool {
    query
        .since
        .is_none_or(|since| nanoseconds(since) <= line.at_ns)
        && query
            .until
            .is_none_or(|until| line.at_ns <= nanoseconds(until))
}

/// The matches of a line: the line itself, or in content mode each non-empty match.
pub(crate) fn find_matches(
    query: &LineQuery,
    line: &ScannedLine<'_>,
    matcher: &BudgetedMatcher,
) -> Result<Vec<Range<usize>>, SegmentError> {
    let (GrepMode::Content, Some(pattern)) = (query.grep_mode, &query.grep) else {
        return Ok(std::iter::once(0..line.text.len()).collect());
    };
    let mut found = Vec::new();
    let mut from = 0;
    while from <= line.text.len() {
        let next = matcher
            .find_at(pattern, line.text, from)
            .map_err(|error| SegmentError::Read(error.into()))?;
        let Some(range) = next else { break };
        from = range.end.max(range.start + 1);
        if !range.is_empty() {
            from = range.end;
            found.push(range);
        }
    }
    Ok(found)
}

/// The line to search for matches, where those are returned and are only in the text as it reads.
pub(crate) fn plain_content(
    query: &LineQuery,
    line: &ScannedLine<'_>,
    matcher: &BudgetedMatcher,
) -> Result<Option<Vec<u8>>, SegmentError> {
    let (GrepMode::Content, Some(pattern)) = (query.grep_mode, &query.grep) else {
        return Ok(None);
    };
    let plain = matcher.plain_text_match(pattern, line.text);
    plain.map_err(|error| SegmentError::Read(error.into()))
}

/// The beginning of the `limit` bytes around the first match of a longer line; 0 for one that is not
/// longer.
pub(crate) fn start_around_match(
    pattern: &Pattern,
    matcher: &BudgetedMatcher,
    text: &[u8],
    limit: usize,
) -> Result<usize, SegmentError> {
    if text.len() <= limit {
        return Ok(0);
    }
    let found = matcher.find_at(pattern, text, 0);
    let found = found.map_err(|error| SegmentError::Read(error.into()))?;
    let context = |found: &Range<usize>| limit.saturating_sub(found.len()) / 2;
    let start = found.map_or(0, |it| it.start.saturating_sub(context(&it)));
    Ok(start.min(text.len() - limit))
}

/// The lines of these streams that have ended.
pub(crate) fn newlines(counters: &StreamCounters, streams: StreamSet) -> u64 {
    let of = |stream| counters[usize::from(stream_code(stream))].newlines;
    streams.iter().map(of).sum()
}

/// Counts matches.
pub(crate) struct MatchCounter<'q> {
    pub(crate) query: &'q LineQuery,
    pub(crate) watch: BudgetedMatcher,
    pub(crate) count: u64,
    /// The end of the last line counted.
    pub(crate) last: u64,
    pub(crate) stop_at: Option<u64>,
    /// The end of each line and its number of matches, if requested.
    pub(crate) ends: Option<Vec<(u64, u64)>>,
}

impl<'q> MatchCounter<'q> {
    pub(crate) fn new(query: &'q LineQuery, matcher: BudgetedMatcher) -> Self {
        Self {
            query,
            watch: matcher,
            count: 0,
            last: 0,
            stop_at: None,
            ends: None,
        }
    }
}

impl LineVisitor for MatchCounter<'_> {
    fn visit_line(&mut self, line: &ScannedLine<'_>) -> Result<ScanControl, SegmentError> {
        if !is_in_time_range(self.query, line) {
            return Ok(ScanControl::Continue);
        }
        if self.stop_at.is_some_and(|most| self.count >= most) {
            return Ok(ScanControl::Stop);
        }
        let plain = plain_content(self.query, line, &self.watch)?;
        let read = line.with_text(plain.as_deref());
        let matches = find_matches(self.query, &read, &self.watch)?.len() as u64;
        self.count += matches;
        self.last = line.end;
        if let Some(ends) = self.ends.as_mut().filter(|_| matches > 0) {
            ends.push((line.end, matches));
        }
        Ok(ScanControl::Continue)
    }
}

/// Counts lines that end in this range of offsets, by the index alone.
pub(crate) fn count_lines(
    snapshot: &JournalSnapshot<'_>,
    range: Range<u64>,
    query: &LineQuery,
) -> Result<u64, SegmentError> {
    let mut count = 0;
    let newlines = |counters: &StreamCounters| newlines(counters, query.streams);
    let first = snapshot.locate(range.start)?.slot;
    let last = snapshot.locate(range.end)?.slot;
    for slot in first..=last {
        let Some(segment) = snapshot.valid_segment(slot)? else {
            break;
        };
        let begin = if slot == first {
            newlines(&snapshot.counters_at(slot, range.start)?)
        } else {
            newlines(&segment.counters)
        };
        let until = if slot == last {
            range.end
        } else {
            segment.end()?
        };
        let end = match slot < last && snapshot.is_adjacent(slot + 1) {
            true => snapshot
                .valid_segment(slot + 1)?
                .map_or(begin, |next| newlines(&next.counters)),
            false => newlines(&snapshot.counters_at(slot, until)?),
        };
        count += end.saturating_sub(begin);
    }
    Ok(count)
}

/// Counts lines that are open at this offset.
pub(crate) fn count_open_lines(
    snapshot: &JournalSnapshot<'_>,
    offset: u64,
    query: &LineQuery,
) -> Result<u64, SegmentError> {
    let last = snapshot.locate(offset)?.slot;
    let tallies = snapshot.counters_at(last, offset)?;
    let open = |stream: &StreamName| tallies[usize::from(stream_code(*stream))].open;
    Ok(query.streams.iter().filter(open).count() as u64)
}
