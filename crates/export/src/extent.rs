//! [`ExportExtent`]: what a journal holds when its export begins.

use ostler_journal::{Gap, Journal, ReadError};

use crate::entry::{EntrySink, ExportEntry};
use crate::error::ExportError;

/// The extent of a journal when its export began: an export without all of it is incomplete.
#[derive(Debug)]
pub(crate) struct ExportExtent {
    /// What was missing, in order.
    missing: Vec<Gap>,
    /// The offset after the last byte.
    end: u64,
}

impl ExportExtent {
    pub(crate) fn of(journal: &Journal) -> Result<Self, ReadError> {
        Ok(Self {
            missing: journal.gaps()?,
            end: journal.end()?,
        })
    }

    /// Checks that an export that stops at `offset` has reached the end.
    pub(crate) fn check_reached(&self, offset: u64) -> Result<(), ExportError> {
        check_empty(offset, self.end)
    }

    /// Checks that a gap consists of what was missing and of what came after the end.
    pub(crate) fn check_gap(&self, gap: Gap) -> Result<(), ExportError> {
        let mut from = gap.from;
        for missing in &self.missing {
            if missing.from <= from {
                from = from.max(missing.to);
            }
        }
        check_empty(from, gap.to.min(self.end))
    }
}

/// Checks that nothing is missing from `from` to `to`.
fn check_empty(from: u64, to: u64) -> Result<(), ExportError> {
    match from < to {
        true => Err(ExportError::Incomplete { from, to }),
        false => Ok(()),
    }
}

/// Checks the gaps of a format that does not express them, and passes the entries on.
pub(crate) struct GapCheckSink<'a, S> {
    pub(crate) sink: S,
    pub(crate) extent: &'a ExportExtent,
}

impl<S: EntrySink> EntrySink for GapCheckSink<'_, S> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        if let ExportEntry::Gap(gap) = entry {
            self.extent.check_gap(*gap)?;
        }
        self.sink.entry(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_new_where_it_exceeds_what_was_missing() {
        let gap = |from, to| Gap { from, to };
        let extent = ExportExtent {
            missing: vec![gap(0, 10), gap(10, 20), gap(50, 60)],
            end: 100,
        };
        for known in [
            gap(0, 20),
            gap(5, 20),
            gap(50, 60),
            gap(55, 60),
            gap(100, 200),
        ] {
            assert!(extent.check_gap(known).is_ok(), "{known:?}");
        }
        for (new, from, to) in [
            (gap(0, 21), 20, 21),
            (gap(40, 60), 40, 60),
            (gap(55, 70), 60, 70),
            (gap(90, 200), 90, 100),
        ] {
            let error = extent.check_gap(new).unwrap_err();
            assert!(
                matches!(error, ExportError::Incomplete { from: a, to: b } if (a, b) == (from, to)),
                "{new:?}: {error}"
            );
        }
        assert!(extent.check_reached(100).is_ok() && extent.check_reached(101).is_ok());
        assert!(extent.check_reached(99).is_err());
    }
}
