//! What of the lines in a range is asked for, and how many of them there are.

use crate::bounds::Bounds;
use crate::index::Tallies;
use crate::pattern::Watch;
use crate::query::{GrepMode, LineQuery, stream_code};
use crate::scan::{Flow, MATCH_BYTES, Seen, Sink};
use crate::segment::Trouble;
use crate::view::View;
use ostler_model::StreamName;

/// Bytes of a line carried along: what is returned, or what a pattern is tried on.
pub(crate) fn keep(query: &LineQuery) -> usize {
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

/// Whether a line's time is asked for.
pub(crate) fn in_time(query: &LineQuery, line: &Seen<'_>) -> bool {
    query
        .since
        .is_none_or(|since| nanoseconds(since) <= line.at_ns)
        && query
            .until
            .is_none_or(|until| line.at_ns <= nanoseconds(until))
}

/// The matches of a line: itself, or in content mode each non-empty match.
pub(crate) fn matches(
    query: &LineQuery,
    line: &Seen<'_>,
    watch: &Watch,
) -> Result<Vec<std::ops::Range<usize>>, Trouble> {
    let (GrepMode::Content, Some(pattern)) = (query.grep_mode, &query.grep) else {
        return Ok(std::iter::once(0..line.text.len()).collect());
    };
    let mut found = Vec::new();
    let mut from = 0;
    while from <= line.text.len() {
        let next = watch
            .find_at(pattern, line.text, from)
            .map_err(|error| Trouble::Read(error.into()))?;
        let Some(range) = next else { break };
        from = range.end.max(range.start + 1);
        if !range.is_empty() {
            from = range.end;
            found.push(range);
        }
    }
    Ok(found)
}

/// Counts matches.
pub(crate) struct Counter<'q> {
    pub(crate) query: &'q LineQuery,
    pub(crate) watch: Watch,
    pub(crate) count: u64,
    /// The end of the last line counted.
    pub(crate) last: u64,
    pub(crate) stop_at: Option<u64>,
    /// The end of each line and its matches, if asked for.
    pub(crate) ends: Option<Vec<(u64, u64)>>,
}

impl<'q> Counter<'q> {
    pub(crate) fn new(query: &'q LineQuery, watch: Watch) -> Self {
        Self {
            query,
            watch,
            count: 0,
            last: 0,
            stop_at: None,
            ends: None,
        }
    }
}

impl Sink for Counter<'_> {
    fn line(&mut self, line: &Seen<'_>) -> Result<Flow, Trouble> {
        if !in_time(self.query, line) {
            return Ok(Flow::Continue);
        }
        if self.stop_at.is_some_and(|most| self.count >= most) {
            return Ok(Flow::Stop);
        }
        let matches = matches(self.query, line, &self.watch)?.len() as u64;
        self.count += matches;
        self.last = line.end;
        if let Some(ends) = self.ends.as_mut().filter(|_| matches > 0) {
            ends.push((line.end, matches));
        }
        Ok(Flow::Continue)
    }
}

/// Lines that end in `from..bounds.until`, by the index alone.
pub(crate) fn count_lines(
    view: &View<'_>,
    bounds: &Bounds,
    from: u64,
    query: &LineQuery,
) -> Result<u64, Trouble> {
    let mut count = 0;
    let sum = |tallies: &Tallies| -> u64 {
        query
            .streams
            .iter()
            .map(|stream| tallies[usize::from(stream_code(stream))].newlines)
            .sum()
    };
    let first = view.locate(from)?.slot;
    let last = view.locate(bounds.until)?.slot;
    for slot in first..=last {
        let Some(segment) = view.sound_segment(slot)? else {
            break;
        };
        let begin = if slot == first {
            sum(&view.tallies_at(slot, from)?)
        } else {
            sum(&segment.tallies)
        };
        let until = if slot == last {
            bounds.until
        } else {
            segment.end()?
        };
        let end = match slot < last && view.adjoins(slot + 1) {
            true => view
                .sound_segment(slot + 1)?
                .map_or(begin, |next| sum(&next.tallies)),
            false => sum(&view.tallies_at(slot, until)?),
        };
        count += end.saturating_sub(begin);
    }
    Ok(count)
}

/// Lines that are open at the end.
pub(crate) fn count_open_lines(
    view: &View<'_>,
    bounds: &Bounds,
    query: &LineQuery,
) -> Result<u64, Trouble> {
    let last = view.locate(bounds.until)?.slot;
    let tallies = view.tallies_at(last, bounds.until)?;
    let open = |stream: &StreamName| tallies[usize::from(stream_code(*stream))].open;
    Ok(query.streams.iter().filter(open).count() as u64)
}
