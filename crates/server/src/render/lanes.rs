//! The budget of an excerpt, shared between the streams.

use super::excerpt::Piece;
use super::price::Price;

/// Standard error gets at least this share of the budget: it is where what failed is told most
/// often.
const STDERR_PERCENT: usize = 50;

/// The lines of one stream among the pieces.
pub(super) struct Lane {
    pub(super) places: Vec<usize>,
    /// What it may cost.
    pub(super) share: usize,
    /// Whether all of it costs no more than that.
    pub(super) is_small: bool,
}

/// Standard output (or the terminal's) and standard error, each with its share of the room: all
/// it wants, unless both want more than there is.
pub(super) fn lanes(pieces: &[Piece], room: usize, price: Price) -> Vec<Lane> {
    let places = |errors: bool| -> Vec<usize> {
        let places = 0..pieces.len();
        let of = |place: &usize| pieces[*place].is_stderr() == errors;
        places.filter(of).collect()
    };
    let wants = |places: &[usize]| {
        let cost = |place: &usize| {
            let row = pieces[*place].row();
            row.map_or(room, |row| price.of_row(row))
        };
        let cost: usize = places.iter().map(cost).sum();
        cost.min(room)
    };
    let (output, errors) = (places(false), places(true));
    let guaranteed = room * STDERR_PERCENT / 100;
    let for_errors = wants(&errors).min(guaranteed.max(room - wants(&output)));
    let lane = |places: Vec<usize>, share: usize| Lane {
        is_small: wants(&places) <= share && share < room,
        places,
        share,
    };
    let lanes = [lane(output, room - for_errors), lane(errors, for_errors)];
    let used = lanes.into_iter().filter(|lane| !lane.places.is_empty());
    used.collect()
}

/// The first of these places that cost at most `most` together, one in any case.
pub(super) fn quota<'p>(
    places: impl Iterator<Item = &'p usize>,
    most: usize,
    cost: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut spent = 0;
    let mut quota = Vec::new();
    for place in places {
        spent += cost(*place);
        if spent > most && !quota.is_empty() {
            break;
        }
        quota.push(*place);
    }
    quota
}
