//! Sets of offsets, kept as ranges.

use serde::{Deserialize, Serialize};

/// The most ranges kept; beyond it, the two with the smallest distance are merged.
const RANGES_MAX: usize = 64;

/// A set of offsets as sorted ranges that do not touch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds the offsets `from..to`.
    pub fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        self.0.retain(|&(first, last)| {
            let touches = first <= to && from <= last;
            if touches {
                (from, to) = (from.min(first), to.max(last));
            }
            !touches
        });
        let index = self.0.partition_point(|&(first, _)| first < from);
        self.0.insert(index, (from, to));
        if self.0.len() > RANGES_MAX {
            self.join_nearest();
        }
    }

    fn join_nearest(&mut self) {
        let gap_after = |place: &usize| self.0[place + 1].0 - self.0[*place].1;
        let indices = 0..self.0.len().saturating_sub(1);
        if let Some(index) = indices.min_by_key(gap_after) {
            let (_, to) = self.0.remove(index + 1);
            self.0[index].1 = to;
        }
    }

    /// The number of offsets of `from..to` that are in the set.
    #[must_use]
    pub fn count_within(&self, from: u64, to: u64) -> u64 {
        let within = |&(first, last): &(u64, u64)| last.min(to).saturating_sub(first.max(from));
        self.0.iter().map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_hold_what_was_added(added in prop::collection::vec((0u64..200, 0u64..40), 0..30), from in 0u64..250, len in 0u64..250) {
            let mut ranges = Ranges::default();
            for (from, len) in &added {
                ranges.add(*from, from + len);
            }
            let holds = |at: &u64| added.iter().any(|(from, len)| (*from..from + len).contains(at));
            prop_assert_eq!(ranges.count_within(from, from + len), (from..from + len).filter(holds).count() as u64);
            prop_assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn there_are_never_too_many() {
        let mut ranges = Ranges::default();
        for at in 0..1_000 {
            ranges.add(at * 10, at * 10 + 1);
        }
        assert_eq!(ranges.0.len(), RANGES_MAX);
        assert!(ranges.count_within(0, 10_000) >= 1_000);
    }
}
