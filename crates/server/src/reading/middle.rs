//! What lies between the first and the last lines: what of it says that something failed, and
//! how much of it stays hidden.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use ostler_journal::{
    Encoding, Journal, Line, LinePage, LineQuery, Pattern, ReadError, StreamSet, Unfinished,
};
use ostler_model::{Cursor, StreamName};

use super::count::{Counter, size};
use super::on_text;
use super::pages::{Front, is_counted};
use crate::render::faults::{CANDIDATES, Fault, STRONG, shape, weigh};
use crate::render::{Fold, Hidden, Piece, fold, rows};

/// Bytes searched for failures: half of them the oldest, half the newest.
const SEARCH_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes searched where each line must be decoded first.
const DECODED_SEARCH_BYTES: u64 = 4 * 1024 * 1024;
/// Lines weighed in each half; a program that prints nothing but errors is not read through.
const WEIGHED_LINES: usize = 30_000;
/// Lines of a page of the search.
const PAGE_LINES: u64 = 4_096;
/// Bytes of one line that are weighed.
const WEIGHED_BYTES: u64 = 1_024;
/// Bytes fetched of a line that is shown.
const SHOWN_BYTES: u64 = 4 * 1_024;
/// Failures fetched with their neighbours: more than a reply can show.
const FETCHED: usize = 256;
/// Lines between two fetched ones that are fetched too.
const SHORT_GAP_LINES: u64 = 3;
/// What a failure weighs less each time the number of those like it doubles.
const ALIKE_MALUS: u32 = 6;

static PATTERN: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(CANDIDATES).expect("a constant pattern, compiled in every test"));

/// What lies between.
#[derive(Debug, Default)]
pub(super) struct Between {
    /// What is hidden, and rows that say what failed.
    pub(super) pieces: Vec<Piece>,
    /// How many of the lines hidden look how.
    pub(super) alike: HashMap<u64, u64>,
    /// Bytes that were not searched.
    pub(super) unsearched: u64,
}

/// A line that says what failed.
#[derive(Debug, Clone, Copy)]
struct Found {
    offset: u64,
    number: u64,
    shape: u64,
    fault: Fault,
    /// How many like it came before.
    before: u32,
}

/// What lies between the first lines and the last.
pub(super) fn between(
    journal: &Journal,
    query: &LineQuery,
    (front, back): (&Front, &LinePage),
    encoding: Option<Encoding>,
) -> Result<Between, ReadError> {
    let (Some(first), Some(last), false) = (&front.last, back.lines.first(), is_counted(query))
    else {
        return Ok(Between::counted(query, front, back));
    };
    let middle = Middle {
        journal,
        query,
        encoding,
        from: front.next.offset,
        until: last.offset,
        numbers: (first.number, last.number),
    };
    let mut between = Between::default();
    let found = middle.search(&mut between)?;
    let lines = middle.fetch(&found, &mut between)?;
    let shown = front.bytes + back.lines.iter().map(size).sum::<u64>();
    between.pieces = middle.pieces((first, last), lines, shown)?;
    Ok(between)
}

impl Between {
    /// What the front page counted.
    fn counted(query: &LineQuery, front: &Front, back: &LinePage) -> Self {
        let lines = front.beyond.saturating_sub(back.lines.len() as u64);
        let hidden = Piece::Hidden(Hidden {
            lines,
            bytes: None,
            offset: front.next.offset,
            is_stderr: query.streams == StreamSet::only(StreamName::Stderr),
        });
        Self {
            pieces: (lines > 0).then_some(hidden).into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Lines of one stream between two others.
struct Middle<'q> {
    journal: &'q Journal,
    query: &'q LineQuery,
    encoding: Option<Encoding>,
    from: u64,
    until: u64,
    /// The numbers of the lines before and after.
    numbers: (u64, u64),
}

impl Middle<'_> {
    /// Searches the oldest and the newest part.
    fn search(&self, between: &mut Between) -> Result<Vec<Found>, ReadError> {
        let decoded = self.encoding.is_some_and(|one| one != Encoding::UTF_8);
        let most = if decoded {
            DECODED_SEARCH_BYTES
        } else {
            SEARCH_BYTES
        };
        let all = self.until.saturating_sub(self.from);
        let parts = if all <= most {
            vec![(self.from, self.until)]
        } else {
            between.unsearched = all - most;
            vec![
                (self.from, self.from + most / 2),
                (self.until - most / 2, self.until),
            ]
        };
        let mut found = Vec::new();
        let mut alike = HashMap::new();
        for (from, until) in parts {
            between.unsearched += self.search_part((from, until), &mut found, &mut alike)?;
        }
        Ok(found)
    }

    /// Searches one part; answers how many bytes at its end were left.
    fn search_part(
        &self,
        (from, until): (u64, u64),
        found: &mut Vec<Found>,
        alike: &mut HashMap<u64, u32>,
    ) -> Result<u64, ReadError> {
        let query = self.lines_in(from, until);
        let query = LineQuery {
            grep: Some(PATTERN.clone()),
            max_lines: PAGE_LINES,
            max_line_bytes: WEIGHED_BYTES,
            ..query
        };
        let mut query = on_text(self.journal, &query, self.encoding)?;
        let mut left = WEIGHED_LINES;
        loop {
            let page = self.journal.lines(&query)?;
            left = left.saturating_sub(page.lines.len());
            self.weigh(&page.lines, found, alike);
            let at = page.next.offset;
            if !page.more || at >= until {
                return Ok(0);
            }
            if left == 0 || Some(page.next) == query.from {
                return Ok(until.saturating_sub(at));
            }
            query.from = Some(page.next);
        }
    }

    fn weigh(&self, lines: &[Line], found: &mut Vec<Found>, alike: &mut HashMap<u64, u32>) {
        let rows = rows(lines, self.encoding, Unfinished::Hide);
        let numbers: HashMap<u64, u64> = lines.iter().map(|l| (l.offset, l.number)).collect();
        for row in rows {
            let (Some(fault), Some(&number)) = (weigh(&row.text), numbers.get(&row.offset)) else {
                continue;
            };
            if fault.weight < STRONG || number <= self.numbers.0 || number >= self.numbers.1 {
                continue;
            }
            let shape = shape(&row.text);
            let before = alike.entry(shape).or_default();
            found.push(Found {
                offset: row.offset,
                number,
                shape,
                fault,
                before: *before,
            });
            *before += 1;
        }
    }

    /// Fetches the most telling lines with their neighbours, and counts the others.
    fn fetch(
        &self,
        found: &[Found],
        between: &mut Between,
    ) -> Result<BTreeMap<u64, Line>, ReadError> {
        let mut order: Vec<&Found> = found.iter().collect();
        order.sort_by_key(|found| (Reverse(found.priority()), found.number));
        let mut lines = BTreeMap::new();
        for found in order.iter().take(FETCHED) {
            if !lines.contains_key(&found.number) {
                self.fetch_one(found, &mut lines)?;
            } else if found.fault.after > 0 {
                self.fetch_after(found, &mut lines)?;
            }
        }
        self.fetch_short_gaps(&mut lines)?;
        for found in found {
            if !lines.contains_key(&found.number) {
                *between.alike.entry(found.shape).or_default() += 1;
            }
        }
        Ok(lines)
    }

    fn fetch_one(&self, found: &Found, lines: &mut BTreeMap<u64, Line>) -> Result<(), ReadError> {
        self.fetch_after(found, lines)?;
        if found.fault.before > 0 {
            let page = self.journal.lines(&LineQuery {
                tail: Some(found.fault.before as u64),
                ..self.lines_in(self.from, found.offset)
            })?;
            self.keep(page, lines);
        }
        Ok(())
    }

    fn fetch_after(&self, found: &Found, lines: &mut BTreeMap<u64, Line>) -> Result<(), ReadError> {
        let page = self.journal.lines(&LineQuery {
            head: Some(found.fault.after as u64 + 1),
            ..self.lines_in(found.offset, self.until)
        })?;
        self.keep(page, lines);
        Ok(())
    }

    /// Fetches what lies between fetched lines where it is so little that a marker may cost
    /// more.
    fn fetch_short_gaps(&self, lines: &mut BTreeMap<u64, Line>) -> Result<(), ReadError> {
        let known: Vec<(u64, u64)> = lines.values().map(|it| (it.number, it.offset)).collect();
        for two in known.windows(2) {
            let [(before, from), (after, until)] = *two else {
                continue;
            };
            let between = after - before - 1;
            if (1..=SHORT_GAP_LINES).contains(&between) {
                let page = self.journal.lines(&LineQuery {
                    head: Some(between + 1),
                    ..self.lines_in(from, until)
                })?;
                self.keep(page, lines);
            }
        }
        Ok(())
    }

    fn keep(&self, page: LinePage, lines: &mut BTreeMap<u64, Line>) {
        let (after, before) = self.numbers;
        let inside = page.lines.into_iter();
        let inside = inside.filter(|line| line.number > after && line.number < before);
        lines.extend(inside.map(|line| (line.number, line)));
    }

    /// Rows and what is hidden between them.
    fn pieces(
        &self,
        (first, last): (&Line, &Line),
        lines: BTreeMap<u64, Line>,
        shown: u64,
    ) -> Result<Vec<Piece>, ReadError> {
        let counter = Counter::new(self.journal, self.query.streams)?;
        let shown = shown + lines.values().map(size).sum::<u64>();
        let lines: Vec<Line> = lines.into_values().collect();
        let mut pieces = Vec::new();
        let mut before = first;
        for run in lines.chunk_by(|one, next| one.number + 1 == next.number) {
            pieces.extend(hidden(&counter, before, &run[0])?);
            let mut rows = Fold::default();
            fold(&mut rows, run, self.encoding, Unfinished::Final);
            pieces.extend(rows.finish().into_iter().map(Piece::Row));
            before = run.last().unwrap_or(before);
        }
        pieces.extend(hidden(&counter, before, last)?);
        if let Some(all) = counter.everything(self.query) {
            fill_in(&mut pieces, all.saturating_sub(shown));
        }
        Ok(pieces)
    }

    /// Lines that end in a part of what lies between.
    fn lines_in(&self, from: u64, until: u64) -> LineQuery {
        let cursor = |offset| Some(Cursor { offset, event: 0 });
        LineQuery {
            from: cursor(from),
            until_cursor: cursor(until),
            streams: self.query.streams,
            max_line_bytes: SHOWN_BYTES,
            count_omitted: false,
            unfinished: Unfinished::Hide,
            ..LineQuery::default()
        }
    }
}

impl Found {
    fn priority(&self) -> u32 {
        let malus = (self.before + 1).ilog2() * ALIKE_MALUS;
        u32::from(self.fault.weight).saturating_sub(malus)
    }
}

/// What lies hidden between two lines.
fn hidden(counter: &Counter<'_>, before: &Line, after: &Line) -> Result<Option<Piece>, ReadError> {
    let lines = after.number.saturating_sub(before.number + 1);
    if lines == 0 {
        return Ok(None);
    }
    Ok(Some(Piece::Hidden(Hidden {
        lines,
        bytes: counter.between(before, after.offset)?,
        offset: before.offset + size(before),
        is_stderr: before.stream == StreamName::Stderr,
    })))
}

/// The one stretch that was too long to be counted has what is left of all bytes hidden.
fn fill_in(pieces: &mut [Piece], all: u64) {
    let stretches = pieces.iter_mut().filter_map(|piece| match piece {
        Piece::Hidden(hidden) => Some(hidden),
        Piece::Row(_) => None,
    });
    let (known, mut unknown): (Vec<_>, Vec<_>) =
        stretches.partition(|hidden| hidden.bytes.is_some());
    let counted: u64 = known.iter().filter_map(|hidden| hidden.bytes).sum();
    if let [hidden] = unknown.as_mut_slice() {
        hidden.bytes = Some(all.saturating_sub(counted));
    }
}
