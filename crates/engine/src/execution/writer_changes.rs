//! Changes of the writer of a session that its driver has not recorded yet.

use std::collections::VecDeque;

use ostler_model::Principal;
use parking_lot::Mutex;

/// Changes that wait to be recorded; beyond them the oldest are dropped.
const CHANGES_MAX: usize = 64;

/// The changes, oldest first: the principal who alone may type from then on, or none.
#[derive(Debug, Default)]
pub(super) struct WriterChanges(Mutex<VecDeque<Option<Principal>>>);

impl WriterChanges {
    pub(super) fn push(&self, by: Option<Principal>) {
        let mut changes = self.0.lock();
        if changes.len() == CHANGES_MAX {
            changes.pop_front();
        }
        changes.push_back(by);
    }

    pub(super) fn pop(&self) -> Option<Option<Principal>> {
        self.0.lock().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrecorded_changes_are_bounded_and_the_newest_stay() {
        let changes = WriterChanges::default();
        changes.push(Some(Principal::unix(1)));
        for _ in 0..CHANGES_MAX {
            changes.push(None);
        }
        let recorded: Vec<_> = std::iter::from_fn(|| changes.pop()).collect();
        assert_eq!(recorded, vec![None; CHANGES_MAX]);
    }
}
