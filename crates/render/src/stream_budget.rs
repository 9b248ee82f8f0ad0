//! The budget of an excerpt, divided between the streams.

use super::cost::LineCost;
use super::excerpt_piece::ExcerptPiece;

/// The least percentage of the budget for standard error, where most failures are reported.
const STDERR_PERCENT: usize = 50;

/// The lines of one stream among the pieces.
pub(super) struct StreamShare {
    pub(super) indices: Vec<usize>,
    /// Its share of the budget.
    pub(super) share: usize,
    /// Whether all of it fits into its share.
    pub(super) is_small: bool,
}

/// Standard output (or the terminal's) and standard error, each with its share of the room: all
/// that it needs, unless both need more than there is.
pub(super) fn stream_shares(
    pieces: &[ExcerptPiece],
    room: usize,
    cost: LineCost,
) -> Vec<StreamShare> {
    let indices_of = |errors: bool| -> Vec<usize> {
        let all = 0..pieces.len();
        let is_of_stream = |index: &usize| pieces[*index].is_stderr() == errors;
        all.filter(is_of_stream).collect()
    };
    let wanted_cost = |indices: &[usize]| {
        let cost = |index: &usize| {
            let row = pieces[*index].row();
            row.map_or(room, |row| cost.of_row(row))
        };
        let cost: usize = indices.iter().map(cost).sum();
        cost.min(room)
    };
    let (output, errors) = (indices_of(false), indices_of(true));
    let guaranteed = room * STDERR_PERCENT / 100;
    let error_share = wanted_cost(&errors).min(guaranteed.max(room - wanted_cost(&output)));
    let stream_share = |indices: Vec<usize>, share: usize| StreamShare {
        is_small: wanted_cost(&indices) <= share && share < room,
        indices,
        share,
    };
    let shares = [
        stream_share(output, room - error_share),
        stream_share(errors, error_share),
    ];
    let used = shares.into_iter().filter(|lane| !lane.indices.is_empty());
    used.collect()
}

/// The first of these indices that cost at most `limit` together, but at least one.
pub(super) fn take_within<'p>(
    indices: impl Iterator<Item = &'p usize>,
    limit: usize,
    cost: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut spent = 0;
    let mut taken = Vec::new();
    for index in indices {
        spent += cost(*index);
        if spent > limit && !taken.is_empty() {
            break;
        }
        taken.push(*index);
    }
    taken
}
