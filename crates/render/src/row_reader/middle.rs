//! The range between the first and the last lines: its failure lines, and counts of what stays
//! hidden.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use ostler_journal::{
    Encoding, Journal, JournalLine, LinePage, LineQuery, OpenLineMode, Pattern, ReadError,
    StreamSet,
};
use ostler_model::{Cursor, StreamName};

use super::byte_count::{ByteCounter, line_bytes};
use super::head_tail::{HeadRows, needs_line_count};
use super::with_pattern_encoding;
use crate::failure_lines::{CANDIDATES, FailureLine, STRONG_WEIGHT, classify, line_shape};
use crate::{ExcerptPiece, HiddenLines, RedrawFolder, fold_lines, to_rows};

/// Bytes searched for failures: half of them the oldest, half the newest.
const SEARCH_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes searched where each line must be decoded first.
const DECODED_SEARCH_BYTES: u64 = 4 * 1024 * 1024;
/// Lines classified in each half, which bounds the work for a program that prints only errors.
const CLASSIFIED_LINES: usize = 30_000;
/// Lines per page of the search.
const PAGE_LINES: u64 = 4_096;
/// Bytes of one line that are classified.
const CLASSIFIED_BYTES: u64 = 1_024;
/// The most bytes read of a line that is shown.
const LINE_BYTES: u64 = 4 * 1_024;
/// Failures read with context: more than a reply can show.
const FETCHED: usize = 256;
/// The most lines between two selected ones that are read as well.
const SHORT_GAP_LINES: u64 = 3;
/// Weight lost by a failure each time the number of similar ones doubles.
const SIMILAR_MALUS: u32 = 6;

static PATTERN: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(CANDIDATES).expect("a constant pattern, compiled in every test"));

/// The range between the first and the last lines.
#[derive(Debug, Default)]
pub(super) struct HiddenMiddle {
    /// Hidden ranges, and the failure lines between them.
    pub(super) pieces: Vec<ExcerptPiece>,
    /// Number of hidden failure lines by their shape.
    pub(super) similar: HashMap<u64, u64>,
    /// Bytes that were not searched.
    pub(super) unsearched: u64,
}

/// A failure line.
#[derive(Debug, Clone, Copy)]
struct FailureMatch {
    offset: u64,
    number: u64,
    shape: u64,
    failure: FailureLine,
    /// The number of similar ones before it.
    similar_before: u32,
}

/// Reads the range between the first lines and the last.
pub(super) fn read_middle(
    journal: &Journal,
    query: &LineQuery,
    head: &HeadRows,
    tail: &LinePage,
    encoding: Option<Encoding>,
) -> Result<HiddenMiddle, ReadError> {
    let (Some(first), Some(last), false) =
        (&head.last, tail.lines.first(), needs_line_count(query))
    else {
        return Ok(HiddenMiddle::from_counts(query, head, tail));
    };
    let middle = MiddleSearch {
        journal,
        query,
        encoding,
        from: head.next.offset,
        until: last.offset,
        numbers: (first.number, last.number),
    };
    let mut hidden_middle = HiddenMiddle::default();
    let matches = middle.search(&mut hidden_middle)?;
    let lines = middle.fetch(&matches, &mut hidden_middle)?;
    let shown_bytes = head.bytes + tail.lines.iter().map(line_bytes).sum::<u64>();
    hidden_middle.pieces = middle.pieces(first, last, lines, shown_bytes)?;
    Ok(hidden_middle)
}

impl HiddenMiddle {
    /// The matches counted by the front page.
    fn from_counts(query: &LineQuery, head: &HeadRows, tail: &LinePage) -> Self {
        let lines = head.omitted_lines.saturating_sub(tail.lines.len() as u64);
        let hidden = ExcerptPiece::Hidden(HiddenLines {
            lines,
            bytes: None,
            offset: head.next.offset,
            is_stderr: query.streams == StreamSet::only(StreamName::Stderr),
        });
        Self {
            pieces: (lines > 0).then_some(hidden).into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Lines of one stream between two others.
struct MiddleSearch<'q> {
    journal: &'q Journal,
    query: &'q LineQuery,
    encoding: Option<Encoding>,
    from: u64,
    until: u64,
    /// The numbers of the lines before and after.
    numbers: (u64, u64),
}

impl MiddleSearch<'_> {
    /// Searches the oldest and the newest part.
    fn search(&self, hidden_middle: &mut HiddenMiddle) -> Result<Vec<FailureMatch>, ReadError> {
        let decoded = self.encoding.is_some_and(|one| one != Encoding::UTF_8);
        let limit = if decoded {
            DECODED_SEARCH_BYTES
        } else {
            SEARCH_BYTES
        };
        let all = self.until.saturating_sub(self.from);
        let parts = if all <= limit {
            vec![(self.from, self.until)]
        } else {
            hidden_middle.unsearched = all - limit;
            vec![
                (self.from, self.from + limit / 2),
                (self.until - limit / 2, self.until),
            ]
        };
        let mut matches = Vec::new();
        let mut similar = HashMap::new();
        for (from, until) in parts {
            hidden_middle.unsearched +=
                self.search_part(from, until, &mut matches, &mut similar)?;
        }
        Ok(matches)
    }

    /// Searches one part; returns the number of bytes at its end that were not searched.
    fn search_part(
        &self,
        from: u64,
        until: u64,
        matches: &mut Vec<FailureMatch>,
        similar: &mut HashMap<u64, u32>,
    ) -> Result<u64, ReadError> {
        let query = self.range_query(from, until);
        let query = LineQuery {
            grep: Some(PATTERN.clone()),
            max_lines: PAGE_LINES,
            max_line_bytes: CLASSIFIED_BYTES,
            ..query
        };
        let mut query = with_pattern_encoding(self.journal, &query, self.encoding)?;
        let mut lines_left = CLASSIFIED_LINES;
        loop {
            let page = self.journal.lines(&query)?;
            lines_left = lines_left.saturating_sub(page.lines.len());
            self.classify_lines(&page.lines, matches, similar);
            let at = page.next.offset;
            if !page.more || at >= until {
                return Ok(0);
            }
            if lines_left == 0 || Some(page.next) == query.from {
                return Ok(until.saturating_sub(at));
            }
            query.from = Some(page.next);
        }
    }

    fn classify_lines(
        &self,
        lines: &[JournalLine],
        matches: &mut Vec<FailureMatch>,
        similar: &mut HashMap<u64, u32>,
    ) {
        let rows = to_rows(lines, self.encoding, OpenLineMode::Hide);
        let numbers: HashMap<u64, u64> = lines.iter().map(|l| (l.offset, l.number)).collect();
        for row in rows {
            let (Some(failure), Some(&number)) = (classify(&row.text), numbers.get(&row.offset))
            else {
                continue;
            };
            if failure.weight < STRONG_WEIGHT
                || number <= self.numbers.0
                || number >= self.numbers.1
            {
                continue;
            }
            let shape = line_shape(&row.text);
            let count = similar.entry(shape).or_default();
            matches.push(FailureMatch {
                offset: row.offset,
                number,
                shape,
                failure,
                similar_before: *count,
            });
            *count += 1;
        }
    }

    /// Reads the most significant lines with context, and counts the others.
    fn fetch(
        &self,
        matches: &[FailureMatch],
        hidden_middle: &mut HiddenMiddle,
    ) -> Result<BTreeMap<u64, JournalLine>, ReadError> {
        let mut order: Vec<&FailureMatch> = matches.iter().collect();
        order.sort_by_key(|found| (Reverse(found.priority()), found.number));
        let mut lines = BTreeMap::new();
        for failure_match in order.iter().take(FETCHED) {
            if !lines.contains_key(&failure_match.number) {
                self.fetch_with_context(failure_match, &mut lines)?;
            } else if failure_match.failure.after > 0 {
                self.fetch_after(failure_match, &mut lines)?;
            }
        }
        self.fetch_short_gaps(&mut lines)?;
        for failure_match in matches {
            if !lines.contains_key(&failure_match.number) {
                *hidden_middle
                    .similar
                    .entry(failure_match.shape)
                    .or_default() += 1;
            }
        }
        Ok(lines)
    }

    fn fetch_with_context(
        &self,
        failure_match: &FailureMatch,
        lines: &mut BTreeMap<u64, JournalLine>,
    ) -> Result<(), ReadError> {
        self.fetch_after(failure_match, lines)?;
        if failure_match.failure.before > 0 {
            let page = self.journal.lines(&LineQuery {
                tail: Some(failure_match.failure.before as u64),
                ..self.range_query(self.from, failure_match.offset)
            })?;
            self.insert_inside(page, lines);
        }
        Ok(())
    }

    fn fetch_after(
        &self,
        failure_match: &FailureMatch,
        lines: &mut BTreeMap<u64, JournalLine>,
    ) -> Result<(), ReadError> {
        let page = self.journal.lines(&LineQuery {
            head: Some(failure_match.failure.after as u64 + 1),
            ..self.range_query(failure_match.offset, self.until)
        })?;
        self.insert_inside(page, lines);
        Ok(())
    }

    /// Reads gaps between selected lines that are so small that a marker may cost more.
    fn fetch_short_gaps(&self, lines: &mut BTreeMap<u64, JournalLine>) -> Result<(), ReadError> {
        let fetched: Vec<(u64, u64)> = lines.values().map(|it| (it.number, it.offset)).collect();
        for pair in fetched.windows(2) {
            let [(before, from), (after, until)] = *pair else {
                continue;
            };
            let line_count = after - before - 1;
            if (1..=SHORT_GAP_LINES).contains(&line_count) {
                let page = self.journal.lines(&LineQuery {
                    head: Some(line_count + 1),
                    ..self.range_query(from, until)
                })?;
                self.insert_inside(page, lines);
            }
        }
        Ok(())
    }

    fn insert_inside(&self, page: LinePage, lines: &mut BTreeMap<u64, JournalLine>) {
        let (after, before) = self.numbers;
        let inside = page.lines.into_iter();
        let inside = inside.filter(|line| line.number > after && line.number < before);
        lines.extend(inside.map(|line| (line.number, line)));
    }

    /// Rows and the hidden ranges between them.
    fn pieces(
        &self,
        first: &JournalLine,
        last: &JournalLine,
        lines: BTreeMap<u64, JournalLine>,
        shown_bytes: u64,
    ) -> Result<Vec<ExcerptPiece>, ReadError> {
        let counter = ByteCounter::new(self.journal, self.query.streams)?;
        let shown_bytes = shown_bytes + lines.values().map(line_bytes).sum::<u64>();
        let lines: Vec<JournalLine> = lines.into_values().collect();
        let mut pieces = Vec::new();
        let mut before = first;
        for run in lines.chunk_by(|one, next| one.number + 1 == next.number) {
            pieces.extend(hidden_between(&counter, before, &run[0])?);
            let mut rows = RedrawFolder::default();
            fold_lines(&mut rows, run, self.encoding, OpenLineMode::Final);
            pieces.extend(rows.finish().into_iter().map(ExcerptPiece::Row));
            before = run.last().unwrap_or(before);
        }
        pieces.extend(hidden_between(&counter, before, last)?);
        if let Some(all) = counter.total_if_unbounded(self.query) {
            fill_unknown_bytes(&mut pieces, all.saturating_sub(shown_bytes));
        }
        Ok(pieces)
    }

    /// Lines that end in a part of the range.
    fn range_query(&self, from: u64, until: u64) -> LineQuery {
        let cursor = |offset| Some(Cursor { offset, event: 0 });
        LineQuery {
            from: cursor(from),
            until_cursor: cursor(until),
            streams: self.query.streams,
            max_line_bytes: LINE_BYTES,
            count_omitted: false,
            unfinished: OpenLineMode::Hide,
            ..LineQuery::default()
        }
    }
}

impl FailureMatch {
    fn priority(&self) -> u32 {
        let malus = (self.similar_before + 1).ilog2() * SIMILAR_MALUS;
        u32::from(self.failure.weight).saturating_sub(malus)
    }
}

/// The hidden range between two lines.
fn hidden_between(
    counter: &ByteCounter<'_>,
    before: &JournalLine,
    after: &JournalLine,
) -> Result<Option<ExcerptPiece>, ReadError> {
    let lines = after.number.saturating_sub(before.number + 1);
    if lines == 0 {
        return Ok(None);
    }
    Ok(Some(ExcerptPiece::Hidden(HiddenLines {
        lines,
        bytes: counter.bytes_between(before, after.offset)?,
        offset: before.offset + line_bytes(before),
        is_stderr: before.stream == StreamName::Stderr,
    })))
}

/// The only range too large to be counted gets the rest of all hidden bytes.
fn fill_unknown_bytes(pieces: &mut [ExcerptPiece], all: u64) {
    let stretches = pieces.iter_mut().filter_map(|piece| match piece {
        ExcerptPiece::Hidden(hidden) => Some(hidden),
        ExcerptPiece::Row(_) => None,
    });
    let (counted_stretches, mut uncounted_stretches): (Vec<_>, Vec<_>) =
        stretches.partition(|hidden| hidden.bytes.is_some());
    let counted: u64 = counted_stretches
        .iter()
        .filter_map(|hidden| hidden.bytes)
        .sum();
    if let [hidden] = uncounted_stretches.as_mut_slice() {
        hidden.bytes = Some(all.saturating_sub(counted));
    }
}
