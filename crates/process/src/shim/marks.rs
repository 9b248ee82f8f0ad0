//! When a watching daemon is told of output: at most once per [`MARK_MS`], and never when
//! nobody watches.

use std::time::{Duration, Instant};

/// At most one mark of the journal's end in this time, in milliseconds.
const MARK_MS: u64 = 5;

/// What was told, and what is to be told when.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    watched: bool,
    told: Option<u64>,
    last: Option<Instant>,
    due: Option<Instant>,
}

impl Marks {
    /// Somebody begins or ceases to watch; the first mark comes at once.
    pub(crate) fn watch(&mut self, watched: bool) {
        *self = Self {
            watched,
            ..Self::default()
        };
    }

    /// When the next mark is to be told, if output waits to be.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The journal ends at `end` now: what to tell now, if anything.
    pub(crate) fn at(&mut self, end: u64, now: Instant) -> Option<u64> {
        if !self.watched || self.told == Some(end) {
            return None;
        }
        let due = self.last.map(|last| last + Duration::from_millis(MARK_MS));
        if let Some(due) = due.filter(|due| now < *due) {
            self.due = Some(due);
            return None;
        }
        self.told = Some(end);
        self.last = Some(now);
        self.due = None;
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwatched_output_is_not_told() {
        assert_eq!(Marks::default().at(7, Instant::now()), None);
    }

    #[test]
    fn marks_are_coalesced() {
        let (mut marks, t0) = (Marks::default(), Instant::now());
        let step = Duration::from_millis(MARK_MS);
        marks.watch(true);
        assert_eq!(marks.at(0, t0), Some(0));
        assert_eq!(marks.at(0, t0 + step), None, "nothing new");
        assert_eq!(marks.at(10, t0 + step / 2), None);
        assert_eq!(marks.deadline(), Some(t0 + step));
        assert_eq!(marks.at(30, t0 + step), Some(30));
        assert_eq!(marks.deadline(), None);
    }
}
