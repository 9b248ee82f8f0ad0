//! Selects the lines to show where not all fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::cost::{HEADING_CHARS, LineCost, chars};
use super::excerpt_piece::{ExcerptInput, ExcerptPiece, OmittedLines, omitted_total, similar_note};
use super::failure_lines::{FailureLine, STRONG_WEIGHT, classify, line_shape};
use super::row::OutputRow;
use super::stream_budget::{StreamShare, stream_shares, take_within};

/// The first lines get at least this percentage of the budget.
const HEAD_PERCENT: usize = 12;
/// The last lines get at least this percentage.
const TAIL_PERCENT: usize = 28;
/// Without failures, the first lines get this percentage and the last ones the rest.
const PLAIN_HEAD_PERCENT: usize = 20;
/// Hints of a failure get at most this percentage of the budget.
const HINTS_PERCENT: usize = 15;
/// Where a failure is certain, hints get at most this percentage.
const FEW_HINTS_PERCENT: usize = 4;
/// Lines of less weight are shown only next to selected ones.
const MIN_HINT_WEIGHT: u8 = 30;
/// Number of failures that get context before others get their one line.
const FAILURES_WITH_CONTEXT: usize = 6;
/// The most lines between a message and its location.
const LOCATION_LINES: usize = 3;
/// Additional weight of the first failure: it often caused the others.
const FIRST_BONUS: u32 = 16;
/// Weight lost by a failure similar to earlier ones, each time their number doubles.
const SIMILAR_MALUS: u32 = 6;

/// The selected pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LineSelection {
    /// For each piece, whether it is selected.
    pub(super) selected: Vec<bool>,
    /// Rows with a note, and the number of similar omitted lines.
    pub(super) similar_notes: HashMap<usize, u64>,
}

/// A failure line.
#[derive(Debug, Clone, Copy)]
struct FailureAnchor {
    index: usize,
    failure: FailureLine,
    shape: u64,
    priority: u32,
}

/// Whether a line states a failure with certainty.
pub(super) fn has_failure(pieces: &[ExcerptPiece]) -> bool {
    let mut rows = pieces.iter().filter_map(ExcerptPiece::row);
    rows.any(|row| classify(&row.text).is_some_and(|fault| fault.weight >= STRONG_WEIGHT))
}

/// Selects from `material` what costs at most `room`. Each stream keeps its first and its last
/// lines; failure lines are selected from both together.
pub(super) fn select_lines(material: &ExcerptInput, room: usize, cost: LineCost) -> LineSelection {
    let anchors = anchors(&material.pieces);
    let strong = anchors
        .iter()
        .any(|anchor| anchor.failure.weight >= STRONG_WEIGHT);
    let mut selector = LineSelector::new(&material.pieces, &anchors, room, cost);
    let (head, tail) = if strong {
        (HEAD_PERCENT, TAIL_PERCENT)
    } else {
        let tail = 100 - PLAIN_HEAD_PERCENT - HINTS_PERCENT;
        (PLAIN_HEAD_PERCENT, tail)
    };
    let lanes = stream_shares(&material.pieces, room, cost);
    selector.select_ends(&lanes, head, tail);
    for lane in lanes.iter().filter(|lane| lane.is_small) {
        selector.select_stream(lane);
    }
    selector.select_failures(&anchors);
    let noted_shapes = selector.reserve_notes(&anchors, &material.similar);
    selector.select_from_end();
    selector.close_gaps();
    selector.join_gaps(&anchors);
    let notes = selector.similar_notes(&anchors, &noted_shapes, &material.similar);
    LineSelection {
        selected: selector.selected,
        similar_notes: notes,
    }
}

/// Every failure line, the most significant first.
fn anchors(pieces: &[ExcerptPiece]) -> Vec<FailureAnchor> {
    let mut similar: HashMap<u64, u32> = HashMap::new();
    let mut reported: HashSet<(&str, FailureLocation<'_>, Vec<&str>)> = HashSet::new();
    let mut first = true;
    let mut anchors = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let Some(row) = piece.row() else { continue };
        let Some(failure) = classify(&row.text) else {
            continue;
        };
        let shape = line_shape(&row.text);
        let similar_before = similar.entry(shape).or_default();
        let next = FailureLocation::of(row, &pieces[index + 1..]);
        let lines_before = pieces[index.saturating_sub(failure.before)..index].iter();
        let frames = lines_before
            .filter_map(ExcerptPiece::row)
            .map(|row| row.text.as_str());
        let mut priority = 0;
        if reported.insert((&row.text, next, frames.collect())) {
            let malus = (*similar_before + 1).ilog2() * SIMILAR_MALUS;
            priority = u32::from(failure.weight).saturating_sub(malus).max(1);
        }
        *similar_before += 1;
        if first && failure.weight >= STRONG_WEIGHT {
            first = false;
            priority += FIRST_BONUS;
        }
        anchors.push(FailureAnchor {
            index,
            failure,
            shape,
            priority,
        });
    }
    anchors.sort_by_key(|anchor| (Reverse(anchor.priority), anchor.index));
    anchors
}

/// The location of a failure, from the line after the message. The same message with another
/// location is another failure; with other numbers around it, it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FailureLocation<'t> {
    Explicit(&'t str),
    Shape(u64),
}

impl<'t> FailureLocation<'t> {
    fn of(message: &OutputRow, after: &'t [ExcerptPiece]) -> Self {
        let after = after
            .iter()
            .map_while(ExcerptPiece::row)
            .take(LOCATION_LINES);
        let next = after
            .map(|row| row.text.as_str())
            .find(|text| !text.trim().is_empty());
        let next = next.unwrap_or_default();
        let trimmed = next.trim_start();
        let location_markers = ["-->", "at ", "File \"", "|", "│"];
        if continues_below(message)
            || location_markers
                .iter()
                .any(|marker| trimmed.starts_with(marker))
        {
            Self::Explicit(next)
        } else {
            Self::Shape(line_shape(next))
        }
    }
}

/// Whether the failure is described in the lines that follow.
fn continues_below(message: &OutputRow) -> bool {
    message.text.trim_end().ends_with(':')
}

/// A selection being built: lines are added as long as they fit.
struct LineSelector<'m> {
    pieces: &'m [ExcerptPiece],
    cost: LineCost,
    room: usize,
    /// The most that one marker costs, with the heading of a stream that may follow it.
    marker: usize,
    /// The cost of such a heading; zero where there is one stream.
    heading: usize,
    selected: Vec<bool>,
    /// The shape of each failure line.
    shapes: HashMap<usize, u64>,
    /// The most that the lines, the markers and the notes cost.
    spent: usize,
}

impl<'m> LineSelector<'m> {
    fn new(
        pieces: &'m [ExcerptPiece],
        anchors: &[FailureAnchor],
        room: usize,
        cost: LineCost,
    ) -> Self {
        let empty = LineSelection {
            selected: vec![false; pieces.len()],
            similar_notes: HashMap::new(),
        };
        // No omission has more lines or bytes than all together, or starts after the last.
        let largest = omitted_total(pieces, &empty.selected, |_| true).map(|all| OmittedLines {
            offset: pieces
                .iter()
                .map(ExcerptPiece::offset)
                .max()
                .unwrap_or_default(),
            bytes: Some(pieces.iter().filter_map(ExcerptPiece::bytes).sum()),
            ..all
        });
        let streams: HashSet<bool> = pieces.iter().map(ExcerptPiece::is_stderr).collect();
        let heading = if streams.contains(&true) {
            HEADING_CHARS
        } else {
            0
        };
        let marker = largest.map_or(0, |most| cost.of(&most.marker()) + "s".len()) + heading;
        Self {
            pieces,
            cost,
            room,
            marker,
            heading,
            selected: empty.selected,
            shapes: anchors
                .iter()
                .map(|anchor| (anchor.index, anchor.shape))
                .collect(),
            spent: marker + heading,
        }
    }

    /// What showing a line adds: itself, the heading of its stream, and the change of markers.
    fn added_cost(&self, index: usize) -> Option<isize> {
        let row = self.pieces[index].row()?;
        let gap = |neighbour: Option<&bool>| neighbour.is_some_and(|shown| !shown);
        let before = index
            .checked_sub(1)
            .and_then(|index| self.selected.get(index));
        let gaps = usize::from(gap(before)) + usize::from(gap(self.selected.get(index + 1)));
        let switches =
            is_previous_stderr(self.pieces, index).is_some_and(|it| it != row.is_stderr());
        let heading = if switches { self.heading } else { 0 };
        let own = (self.cost.of_row(row) + heading).cast_signed();
        Some(own + (gaps * self.marker).cast_signed() - self.marker.cast_signed())
    }

    /// Selects a line if it fits; false where it does not, or was not read.
    fn try_select(&mut self, index: usize) -> bool {
        if self.selected[index] {
            return true;
        }
        let Some(added_cost) = self.added_cost(index) else {
            return false;
        };
        let spent = self.spent.saturating_add_signed(added_cost);
        if spent > self.room {
            return false;
        }
        self.spent = spent;
        self.selected[index] = true;
        true
    }

    fn line_cost(&self, index: usize) -> usize {
        let row = self.pieces[index].row();
        row.map_or(0, |row| self.cost.of_row(row))
    }

    /// Selects the first and the last line of each stream, and as many after and before them as fit
    /// into these percentages of the stream's share. Lines of interleaved streams are selected in
    /// turn, so that no gap is between them.
    fn select_ends<'l>(&mut self, lanes: &'l [StreamShare], head: usize, tail: usize) {
        let both = |lane: &'l StreamShare| [lane.indices.first(), lane.indices.last()];
        for index in lanes.iter().flat_map(both).flatten() {
            self.try_select(*index);
        }
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        for lane in lanes {
            let cost = |index| self.line_cost(index);
            heads.extend(take_within(
                lane.indices.iter(),
                lane.share * head / 100,
                cost,
            ));
            tails.extend(take_within(
                lane.indices.iter().rev(),
                lane.share * tail / 100,
                cost,
            ));
        }
        heads.sort_unstable();
        tails.sort_unstable_by_key(|index| Reverse(*index));
        for (indices, share) in [(heads, head), (tails, tail)] {
            let limit = self.spent + self.room * share / 100;
            for index in indices {
                if self.spent >= limit || !self.try_select(index) {
                    break;
                }
            }
        }
    }

    /// Selects all of a stream, the last lines first, within its share.
    fn select_stream(&mut self, lane: &StreamShare) {
        let limit = self.spent + lane.share;
        for index in lane.indices.iter().rev() {
            if self.spent >= limit || !self.try_select(*index) {
                return;
            }
        }
    }

    /// Selects lines from the end as long as they fit.
    fn select_from_end(&mut self) {
        let indices = (0..self.pieces.len()).rev();
        for index in indices {
            if !self.try_select(index) {
                return;
            }
        }
    }

    /// Deselects empty lines between two gaps: the gaps become one.
    fn join_gaps(&mut self, anchors: &[FailureAnchor]) {
        let anchors: HashSet<usize> = anchors.iter().map(|anchor| anchor.index).collect();
        for index in 1..self.pieces.len().saturating_sub(1) {
            let alone = !self.selected[index - 1] && !self.selected[index + 1];
            if self.selected[index] && alone && self.is_blank(index) && !anchors.contains(&index) {
                self.selected[index] = false;
            }
        }
    }

    /// Selects failure lines: the most significant with context, then one line of each other, then
    /// the context of those.
    fn select_failures(&mut self, anchors: &[FailureAnchor]) {
        let reportable = anchors.iter().filter(|anchor| anchor.priority > 0);
        let (strong, hints): (Vec<&FailureAnchor>, Vec<&FailureAnchor>) =
            reportable.partition(|anchor| anchor.failure.weight >= STRONG_WEIGHT);
        for anchor in strong.iter().take(FAILURES_WITH_CONTEXT) {
            self.select_with_context(anchor);
        }
        for anchor in &strong {
            self.try_select(anchor.index);
        }
        for anchor in &strong {
            if self.selected[anchor.index] {
                self.select_with_context(anchor);
            }
        }
        let percent = if strong.is_empty() {
            HINTS_PERCENT
        } else {
            FEW_HINTS_PERCENT
        };
        let limit = self.spent + self.room * percent / 100;
        for anchor in hints {
            if self.spent >= limit || anchor.failure.weight < MIN_HINT_WEIGHT {
                return;
            }
            self.try_select(anchor.index);
        }
    }

    /// Selects a failure line with its context, which ends before the next one of its kind.
    fn select_with_context(&mut self, anchor: &FailureAnchor) {
        if !self.try_select(anchor.index) {
            return;
        }
        let continues = self.pieces[anchor.index].row().is_some_and(continues_below);
        for index in anchor.index + 1..=anchor.index + anchor.failure.after {
            let is_outside = index >= self.pieces.len()
                || (self.is_blank(index) && !continues)
                || self.shapes.get(&index) == Some(&anchor.shape);
            if is_outside || !self.try_select(index) {
                break;
            }
        }
        for index in (anchor.index.saturating_sub(anchor.failure.before)..anchor.index).rev() {
            if !self.try_select(index) {
                break;
            }
        }
    }

    /// Whether a line is empty, which ends the description of a failure; empty lines within one are
    /// indented.
    fn is_blank(&self, index: usize) -> bool {
        let row = self.pieces[index].row();
        row.is_some_and(|row| row.text.is_empty())
    }

    /// Selects gaps that cost no more than their marker.
    fn close_gaps(&mut self) {
        let mut index = 0;
        while index < self.pieces.len() {
            let gap = self.selected[index..].iter().take_while(|shown| !**shown);
            let end = index + gap.count();
            if end > index && self.is_cheap(index..end) {
                // The cost of the marker is free once the last of them is selected.
                self.room += self.marker;
                (index..end).for_each(|index| {
                    self.try_select(index);
                });
                self.room -= self.marker;
            }
            index = end.max(index + 1);
        }
    }

    fn is_cheap(&self, mut gap: Range<usize>) -> bool {
        let mut budget = self.marker;
        gap.all(|index| {
            let cost = self.line_cost(index);
            let fits = cost <= budget && self.pieces[index].row().is_some();
            budget = budget.saturating_sub(cost);
            fits
        })
    }

    /// Reserves the note after the last line of each kind of which not all are shown.
    fn reserve_notes(
        &mut self,
        anchors: &[FailureAnchor],
        similar: &HashMap<u64, u64>,
    ) -> HashSet<u64> {
        let mut noted_shapes = HashSet::new();
        for (shape, kind) in self.failure_kinds(anchors, similar) {
            let cost = chars(&similar_note(kind.unselected));
            if kind.unselected > 0 && self.spent + cost <= self.room {
                self.spent += cost;
                noted_shapes.insert(shape);
            }
        }
        noted_shapes
    }

    /// Which rows get a note, and the number of similar omitted lines.
    fn similar_notes(
        &self,
        anchors: &[FailureAnchor],
        noted_shapes: &HashSet<u64>,
        similar: &HashMap<u64, u64>,
    ) -> HashMap<usize, u64> {
        let kinds = self.failure_kinds(anchors, similar).into_iter();
        let kinds =
            kinds.filter(|(shape, kind)| kind.unselected > 0 && noted_shapes.contains(shape));
        kinds
            .map(|(_, kind)| (kind.last, kind.unselected))
            .collect()
    }

    /// The kinds of failure with at least one selected line.
    fn failure_kinds(
        &self,
        anchors: &[FailureAnchor],
        similar: &HashMap<u64, u64>,
    ) -> BTreeMap<u64, FailureKind> {
        let strong = anchors.iter().filter(|a| a.failure.weight >= STRONG_WEIGHT);
        let (selected, unselected): (Vec<&FailureAnchor>, Vec<&FailureAnchor>) =
            strong.partition(|anchor| self.selected[anchor.index]);
        let mut kinds: BTreeMap<u64, FailureKind> = BTreeMap::new();
        for anchor in selected {
            let hidden = similar.get(&anchor.shape).copied().unwrap_or_default();
            let kind = kinds.entry(anchor.shape).or_insert(FailureKind {
                last: anchor.index,
                unselected: hidden,
            });
            kind.last = kind.last.max(anchor.index);
        }
        for anchor in unselected {
            if let Some(kind) = kinds.get_mut(&anchor.shape) {
                kind.unselected += 1;
            }
        }
        kinds
    }
}

/// Whether the previous piece is of standard error.
fn is_previous_stderr(pieces: &[ExcerptPiece], index: usize) -> Option<bool> {
    let before = index.checked_sub(1)?;
    pieces.get(before).map(ExcerptPiece::is_stderr)
}

/// Failure lines that differ only in their numbers.
struct FailureKind {
    /// The index of the last one selected.
    last: usize,
    /// Number of those not selected.
    unselected: u64,
}
