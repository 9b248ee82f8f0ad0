//! Which lines are shown where not all can be.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::excerpt::{HEADING_CHARS, Material, Omitted, Piece, note, total};
use super::faults::{Fault, STRONG, shape, weigh};
use super::lanes::{Lane, lanes, quota};
use super::price::{Price, chars};
use super::rows::Row;

/// The first lines get this share of the budget at least, in hundredths.
const HEAD_PERCENT: usize = 12;
/// The last lines get this share at least.
const TAIL_PERCENT: usize = 28;
/// Where nothing failed, the first lines get this share and the last ones the rest.
const PLAIN_HEAD_PERCENT: usize = 20;
/// What only hints at a failure gets this share of the budget at most.
const HINTS_PERCENT: usize = 15;
/// Where something says for certain what failed, hints get this share at most.
const FEW_HINTS_PERCENT: usize = 4;
/// What weighs less is shown only where it stands next to something else.
const HINT: u8 = 30;
/// Failures that get their neighbours before others get their one line.
const TOLD_WHOLE: usize = 6;
/// How far behind a message the place is told.
const NEAR_LINES: usize = 3;
/// What the first failure weighs more: it often caused the others.
const FIRST_BONUS: u32 = 16;
/// What one that looks like earlier ones weighs less each time their number doubles.
const ALIKE_MALUS: u32 = 6;

/// Which pieces are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Chosen {
    /// For each piece, whether it is.
    pub(super) shown: Vec<bool>,
    /// Behind which rows is told how many lines like it are not shown.
    pub(super) notes: HashMap<usize, u64>,
}

/// A line that says what failed.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    place: usize,
    fault: Fault,
    shape: u64,
    priority: u32,
}

/// Whether a line says for certain that something failed.
pub(super) fn says_failure(pieces: &[Piece]) -> bool {
    let mut rows = pieces.iter().filter_map(Piece::row);
    rows.any(|row| weigh(&row.text).is_some_and(|fault| fault.weight >= STRONG))
}

/// Chooses from `material` what costs at most `room`. Each stream keeps its first and its last
/// lines; what failed is chosen from both together.
pub(super) fn choose(material: &Material, room: usize, price: Price) -> Chosen {
    let anchors = anchors(&material.pieces);
    let strong = anchors.iter().any(|anchor| anchor.fault.weight >= STRONG);
    let mut choice = Choice::new(&material.pieces, &anchors, room, price);
    let (head, tail) = if strong {
        (HEAD_PERCENT, TAIL_PERCENT)
    } else {
        let tail = 100 - PLAIN_HEAD_PERCENT - HINTS_PERCENT;
        (PLAIN_HEAD_PERCENT, tail)
    };
    let lanes = lanes(&material.pieces, room, price);
    choice.ends(&lanes, (head, tail));
    for lane in lanes.iter().filter(|lane| lane.is_small) {
        choice.all(lane);
    }
    choice.faults(&anchors);
    let noted = choice.noted(&anchors, &material.alike);
    choice.rest();
    choice.close_gaps();
    choice.join_gaps(&anchors);
    let notes = choice.notes(&anchors, &noted, &material.alike);
    Chosen {
        shown: choice.shown,
        notes,
    }
}

/// Every line that says what failed, the most telling first.
fn anchors(pieces: &[Piece]) -> Vec<Anchor> {
    let mut alike: HashMap<u64, u32> = HashMap::new();
    let mut told: HashSet<(&str, Place<'_>, Vec<&str>)> = HashSet::new();
    let mut first = true;
    let mut anchors = Vec::new();
    for (place, piece) in pieces.iter().enumerate() {
        let Some(row) = piece.row() else { continue };
        let Some(fault) = weigh(&row.text) else {
            continue;
        };
        let shape = shape(&row.text);
        let before = alike.entry(shape).or_default();
        let next = Place::of(row, &pieces[place + 1..]);
        let before_it = pieces[place.saturating_sub(fault.before)..place].iter();
        let frames = before_it
            .filter_map(Piece::row)
            .map(|row| row.text.as_str());
        let mut priority = 0;
        if told.insert((&row.text, next, frames.collect())) {
            let malus = (*before + 1).ilog2() * ALIKE_MALUS;
            priority = u32::from(fault.weight).saturating_sub(malus).max(1);
        }
        *before += 1;
        if first && fault.weight >= STRONG {
            first = false;
            priority += FIRST_BONUS;
        }
        anchors.push(Anchor {
            place,
            fault,
            shape,
            priority,
        });
    }
    anchors.sort_by_key(|anchor| (Reverse(anchor.priority), anchor.place));
    anchors
}

/// Where something failed, as the line after the message tells it. A message that comes again
/// with another place is another failure; with other numbers around it, it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place<'t> {
    Told(&'t str),
    Untold(u64),
}

impl<'t> Place<'t> {
    fn of(message: &Row, after: &'t [Piece]) -> Self {
        let after = after.iter().map_while(Piece::row).take(NEAR_LINES);
        let next = after
            .map(|row| row.text.as_str())
            .find(|text| !text.trim().is_empty());
        let next = next.unwrap_or_default();
        let begin = next.trim_start();
        let begins = ["-->", "at ", "File \"", "|", "│"];
        if goes_on(message) || begins.iter().any(|told| begin.starts_with(told)) {
            Self::Told(next)
        } else {
            Self::Untold(shape(next))
        }
    }
}

/// Whether what failed is told in the lines that follow.
fn goes_on(message: &Row) -> bool {
    message.text.trim_end().ends_with(':')
}

/// A choice on its way: lines are added as long as they fit.
struct Choice<'m> {
    pieces: &'m [Piece],
    price: Price,
    room: usize,
    /// What one marker costs at most, with the heading of a stream that may follow it.
    marker: usize,
    /// What such a heading costs; nothing where there is one stream.
    heading: usize,
    shown: Vec<bool>,
    /// The shape of each line that says what failed.
    kinds: HashMap<usize, u64>,
    /// What the lines shown, the markers and the notes cost at most.
    spent: usize,
}

impl<'m> Choice<'m> {
    fn new(pieces: &'m [Piece], anchors: &[Anchor], room: usize, price: Price) -> Self {
        let nothing = Chosen {
            shown: vec![false; pieces.len()],
            notes: HashMap::new(),
        };
        // No stretch has more lines or bytes than all together, or begins behind the last.
        let most = total(pieces, &nothing, |_| true).map(|all| Omitted {
            offset: pieces.iter().map(Piece::offset).max().unwrap_or_default(),
            bytes: Some(pieces.iter().filter_map(Piece::bytes).sum()),
            ..all
        });
        let streams: HashSet<bool> = pieces.iter().map(Piece::is_stderr).collect();
        let heading = if streams.contains(&true) {
            HEADING_CHARS
        } else {
            0
        };
        let marker = most.map_or(0, |most| price.of(&most.marker()) + "s".len()) + heading;
        Self {
            pieces,
            price,
            room,
            marker,
            heading,
            shown: nothing.shown,
            kinds: anchors.iter().map(|one| (one.place, one.shape)).collect(),
            spent: marker + heading,
        }
    }

    /// What showing a line adds: itself, the heading of its stream, and a marker more or less.
    fn price(&self, place: usize) -> Option<isize> {
        let row = self.pieces[place].row()?;
        let gap = |neighbour: Option<&bool>| neighbour.is_some_and(|shown| !shown);
        let before = place.checked_sub(1).and_then(|place| self.shown.get(place));
        let gaps = usize::from(gap(before)) + usize::from(gap(self.shown.get(place + 1)));
        let switches = before_of(self.pieces, place).is_some_and(|it| it != row.is_stderr());
        let heading = if switches { self.heading } else { 0 };
        let own = (self.price.of_row(row) + heading).cast_signed();
        Some(own + (gaps * self.marker).cast_signed() - self.marker.cast_signed())
    }

    /// Shows a line if it fits; false where it does not, or was never fetched.
    fn show(&mut self, place: usize) -> bool {
        if self.shown[place] {
            return true;
        }
        let Some(price) = self.price(place) else {
            return false;
        };
        let spent = self.spent.saturating_add_signed(price);
        if spent > self.room {
            return false;
        }
        self.spent = spent;
        self.shown[place] = true;
        true
    }

    fn cost(&self, place: usize) -> usize {
        let row = self.pieces[place].row();
        row.map_or(0, |row| self.price.of_row(row))
    }

    /// Shows the first and the last line of each stream, and as many after and before them as
    /// these shares of the stream's own share hold, in hundredths. Lines of streams that come
    /// in turn are shown in turn, so that no gap is between them.
    fn ends<'l>(&mut self, lanes: &'l [Lane], (head, tail): (usize, usize)) {
        let both = |lane: &'l Lane| [lane.places.first(), lane.places.last()];
        for place in lanes.iter().flat_map(both).flatten() {
            self.show(*place);
        }
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        for lane in lanes {
            let cost = |place| self.cost(place);
            heads.extend(quota(lane.places.iter(), lane.share * head / 100, cost));
            tails.extend(quota(
                lane.places.iter().rev(),
                lane.share * tail / 100,
                cost,
            ));
        }
        heads.sort_unstable();
        tails.sort_unstable_by_key(|place| Reverse(*place));
        for (places, share) in [(heads, head), (tails, tail)] {
            let most = self.spent + self.room * share / 100;
            for place in places {
                if self.spent >= most || !self.show(place) {
                    break;
                }
            }
        }
    }

    /// Shows all of a stream, the last lines first, within its share.
    fn all(&mut self, lane: &Lane) {
        let most = self.spent + lane.share;
        for place in lane.places.iter().rev() {
            if self.spent >= most || !self.show(*place) {
                return;
            }
        }
    }

    /// Shows lines from the back as long as there is room.
    fn rest(&mut self) {
        let places = (0..self.pieces.len()).rev();
        for place in places {
            if !self.show(place) {
                return;
            }
        }
    }

    /// Leaves out empty lines that stand alone between two gaps: the gaps become one.
    fn join_gaps(&mut self, anchors: &[Anchor]) {
        let anchors: HashSet<usize> = anchors.iter().map(|anchor| anchor.place).collect();
        for place in 1..self.pieces.len().saturating_sub(1) {
            let alone = !self.shown[place - 1] && !self.shown[place + 1];
            if self.shown[place] && alone && self.is_blank(place) && !anchors.contains(&place) {
                self.shown[place] = false;
            }
        }
    }

    /// Shows what failed: the most telling with their neighbours, then the others with one
    /// line each, then the neighbours of these.
    fn faults(&mut self, anchors: &[Anchor]) {
        let worth = anchors.iter().filter(|anchor| anchor.priority > 0);
        let (strong, hints): (Vec<&Anchor>, Vec<&Anchor>) =
            worth.partition(|anchor| anchor.fault.weight >= STRONG);
        for anchor in strong.iter().take(TOLD_WHOLE) {
            self.whole(anchor);
        }
        for anchor in &strong {
            self.show(anchor.place);
        }
        for anchor in &strong {
            if self.shown[anchor.place] {
                self.whole(anchor);
            }
        }
        let percent = if strong.is_empty() {
            HINTS_PERCENT
        } else {
            FEW_HINTS_PERCENT
        };
        let most = self.spent + self.room * percent / 100;
        for anchor in hints {
            if self.spent >= most || anchor.fault.weight < HINT {
                return;
            }
            self.show(anchor.place);
        }
    }

    /// Shows a line that says what failed, and those around it that belong to it; the next
    /// one of its kind does not.
    fn whole(&mut self, anchor: &Anchor) {
        if !self.show(anchor.place) {
            return;
        }
        let goes_on = self.pieces[anchor.place].row().is_some_and(goes_on);
        for place in anchor.place + 1..=anchor.place + anchor.fault.after {
            let over = place >= self.pieces.len()
                || (self.is_blank(place) && !goes_on)
                || self.kinds.get(&place) == Some(&anchor.shape);
            if over || !self.show(place) {
                break;
            }
        }
        for place in (anchor.place.saturating_sub(anchor.fault.before)..anchor.place).rev() {
            if !self.show(place) {
                break;
            }
        }
    }

    /// Whether a line is empty: where tools end what they say of one failure. Inside of it
    /// empty lines are indented.
    fn is_blank(&self, place: usize) -> bool {
        let row = self.pieces[place].row();
        row.is_some_and(|row| row.text.is_empty())
    }

    /// Shows what costs no more than the marker that would stand for it.
    fn close_gaps(&mut self) {
        let mut place = 0;
        while place < self.pieces.len() {
            let gap = self.shown[place..].iter().take_while(|shown| !**shown);
            let end = place + gap.count();
            if end > place && self.is_cheap(place..end) {
                // What the marker cost is free once the last of them is shown.
                self.room += self.marker;
                (place..end).for_each(|place| {
                    self.show(place);
                });
                self.room -= self.marker;
            }
            place = end.max(place + 1);
        }
    }

    fn is_cheap(&self, mut gap: Range<usize>) -> bool {
        let mut left = self.marker;
        gap.all(|place| {
            let cost = self.cost(place);
            let fits = cost <= left && self.pieces[place].row().is_some();
            left = left.saturating_sub(cost);
            fits
        })
    }

    /// Keeps room for a note behind the last line of each kind of which not all are shown.
    fn noted(&mut self, anchors: &[Anchor], alike: &HashMap<u64, u64>) -> HashSet<u64> {
        let mut noted = HashSet::new();
        for (shape, kind) in self.kinds(anchors, alike) {
            let cost = chars(&note(kind.left));
            if kind.left > 0 && self.spent + cost <= self.room {
                self.spent += cost;
                noted.insert(shape);
            }
        }
        noted
    }

    /// Behind which lines how many like them are told.
    fn notes(
        &self,
        anchors: &[Anchor],
        noted: &HashSet<u64>,
        alike: &HashMap<u64, u64>,
    ) -> HashMap<usize, u64> {
        let kinds = self.kinds(anchors, alike).into_iter();
        let kinds = kinds.filter(|(shape, kind)| kind.left > 0 && noted.contains(shape));
        kinds.map(|(_, kind)| (kind.last, kind.left)).collect()
    }

    /// The kinds of failure of which at least one line is shown.
    fn kinds(&self, anchors: &[Anchor], alike: &HashMap<u64, u64>) -> BTreeMap<u64, Kind> {
        let strong = anchors.iter().filter(|a| a.fault.weight >= STRONG);
        let (shown, left): (Vec<&Anchor>, Vec<&Anchor>) =
            strong.partition(|anchor| self.shown[anchor.place]);
        let mut kinds: BTreeMap<u64, Kind> = BTreeMap::new();
        for anchor in shown {
            let hidden = alike.get(&anchor.shape).copied().unwrap_or_default();
            let kind = kinds.entry(anchor.shape).or_insert(Kind {
                last: anchor.place,
                left: hidden,
            });
            kind.last = kind.last.max(anchor.place);
        }
        for anchor in left {
            if let Some(kind) = kinds.get_mut(&anchor.shape) {
                kind.left += 1;
            }
        }
        kinds
    }
}

/// Whether the piece before is standard error's.
fn before_of(pieces: &[Piece], place: usize) -> Option<bool> {
    let before = place.checked_sub(1)?;
    pieces.get(before).map(Piece::is_stderr)
}

/// Lines that say the same but for their numbers.
struct Kind {
    /// The last one shown.
    last: usize,
    /// How many are not shown.
    left: u64,
}
