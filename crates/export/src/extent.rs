//! [`ExportExtent`]: what a journal holds when its export begins.

use ostler_journal::{Gap, Journal, ReadError};

use crate::entry::{EntrySink, ExportEntry};
use crate::error::ExportError;

/// The extent of a journal when its export began: an export without all of it is incomplete, but
/// for what is found damaged.
#[derive(Debug)]
pub(crate) struct ExportExtent<'a> {
    journal: &'a Journal,
    /// What was missing, in order.
    missing: Vec<Gap>,
    /// The offset after the last byte.
    end: u64,
}

impl<'a> ExportExtent<'a> {
    pub(crate) fn of(journal: &'a Journal) -> Result<Self, ReadError> {
        Ok(Self {
            journal,
            missing: journal.gaps()?,
            end: journal.end()?,
        })
    }

    /// Checks that an export that stops at `offset` has reached the end.
    pub(crate) fn check_reached(&self, offset: u64) -> Result<(), ExportError> {
        let rest = Gap {
            from: offset,
            to: self.end,
        };
        match rest.from < rest.to {
            true => Err(incomplete(rest)),
            false => Ok(()),
        }
    }

    /// Checks that a gap consists of what was missing, of what is damaged, and of what came after
    /// the end: that nothing of it was removed meanwhile.
    pub(crate) fn check_gap(&self, gap: Gap) -> Result<(), ExportError> {
        let new = without_missing(gap, &self.missing, self.end);
        if new.from >= new.to {
            return Ok(());
        }
        let is_removed = |gone: &Gap| gone.from < new.to && new.from < gone.to;
        match self.journal.gaps()?.iter().any(is_removed) {
            true => Err(incomplete(new)),
            false => Ok(()),
        }
    }
}

/// The part of a gap before `end` that follows what was `missing` at its beginning; empty where
/// there is none.
fn without_missing(gap: Gap, missing: &[Gap], end: u64) -> Gap {
    let mut from = gap.from;
    for missing in missing {
        if missing.from <= from {
            from = from.max(missing.to);
        }
    }
    let to = gap.to.min(end);
    Gap { from, to }
}

const fn incomplete(Gap { from, to }: Gap) -> ExportError {
    ExportError::Incomplete { from, to }
}

/// Checks the gaps of a format that does not express them, and passes the entries on.
pub(crate) struct GapCheckSink<'a, S> {
    pub(crate) sink: S,
    pub(crate) extent: &'a ExportExtent<'a>,
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
        let missing = [gap(0, 10), gap(10, 20), gap(50, 60)];
        let new = |it| without_missing(it, &missing, 100);
        for known in [
            gap(0, 20),
            gap(5, 20),
            gap(50, 60),
            gap(55, 60),
            gap(100, 200),
        ] {
            let rest = new(known);
            assert!(rest.from >= rest.to, "{known:?}: {rest:?}");
        }
        for (it, rest) in [
            (gap(0, 21), gap(20, 21)),
            (gap(40, 60), gap(40, 60)),
            (gap(55, 70), gap(60, 70)),
            (gap(90, 200), gap(90, 100)),
        ] {
            assert_eq!(new(it), rest, "{it:?}");
        }
    }
}
