//! Whether the caller of a start has the id of its execution. What nobody knows is stopped when its
//! only caller goes, and when the engine shuts down: which of both comes first, the answer with the
//! id or the stop, is decided once, in one place.

use std::sync::atomic::{AtomicU8, Ordering};

const UNDISCLOSED: u8 = 0;
const DISCLOSED: u8 = 1;
const REVOKED: u8 = 2;

/// The decision for one execution; final once it is made.
#[derive(Debug)]
pub(super) struct IdDisclosure(AtomicU8);

impl IdDisclosure {
    pub(super) const fn new(disclosed: bool) -> Self {
        Self(AtomicU8::new(if disclosed {
            DISCLOSED
        } else {
            UNDISCLOSED
        }))
    }

    /// A caller receives the id; returns false where the execution is stopped as one nobody knows.
    pub(super) fn disclose(&self) -> bool {
        self.decide(DISCLOSED)
    }

    /// The execution is stopped as one nobody knows; returns false where a caller has the id.
    pub(super) fn revoke(&self) -> bool {
        self.decide(REVOKED)
    }

    pub(super) fn is_disclosed(&self) -> bool {
        self.0.load(Ordering::Acquire) == DISCLOSED
    }

    /// Whether the decision is `to`, now or since earlier.
    fn decide(&self, to: u8) -> bool {
        let decided = self
            .0
            .compare_exchange(UNDISCLOSED, to, Ordering::AcqRel, Ordering::Acquire);
        decided.map_or_else(|earlier| earlier == to, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_is_final() {
        let disclosure = IdDisclosure::new(false);
        assert!(!disclosure.is_disclosed());
        assert!(disclosure.disclose() && disclosure.disclose());
        assert!(disclosure.is_disclosed() && !disclosure.revoke());
        let disclosure = IdDisclosure::new(false);
        assert!(disclosure.revoke() && disclosure.revoke());
        assert!(!disclosure.disclose() && !disclosure.is_disclosed());
        assert!(!IdDisclosure::new(true).revoke());
    }
}
