//! When a watching daemon is told of output: at most once per [`MARK_MS`], of a terminal's per
//! [`TERMINAL_MARK_MS`], at once where it answers input ([`INPUT_BURST`]), and never when nobody
//! watches.

use std::time::{Duration, Instant};

/// At most one mark of the journal's end in this time, in milliseconds.
const MARK_MS: u64 = 5;
/// The same of a terminal, in milliseconds: somebody may be looking on (C16).
const TERMINAL_MARK_MS: u64 = 1;
/// Marks after an input that are told at once: the terminal's echo, what the program answers, in
/// a few pieces, and its next prompt.
const INPUT_BURST: u32 = 4;

/// What was told, and what is to be told when.
#[derive(Debug)]
pub(crate) struct Marks {
    step: Duration,
    watched: bool,
    told: Option<u64>,
    last: Option<Instant>,
    due: Option<Instant>,
    /// Marks that are told however soon they follow the one before.
    burst: u32,
}

impl Marks {
    /// Nobody watches yet.
    pub(crate) const fn new(terminal: bool) -> Self {
        let step = if terminal { TERMINAL_MARK_MS } else { MARK_MS };
        Self {
            step: Duration::from_millis(step),
            watched: false,
            told: None,
            last: None,
            due: None,
            burst: 0,
        }
    }

    /// Somebody begins or ceases to watch; the first mark comes at once, and so does the
    /// first output after it.
    pub(crate) fn watch(&mut self, watched: bool) {
        *self = Self {
            step: self.step,
            watched,
            told: None,
            last: None,
            due: None,
            burst: 0,
        };
    }

    /// Input is about to be written: what follows it is told at once, like an echo. What waits
    /// to be told is told before it.
    pub(crate) fn input(&mut self, end: u64, now: Instant) -> Option<u64> {
        self.burst = INPUT_BURST;
        let waiting = self.at(end, now);
        self.burst = INPUT_BURST;
        waiting
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
        let is_first = self.told.is_none();
        let due = self.last.map(|last| last + self.step);
        if let Some(due) = due.filter(|due| now < *due) {
            if self.burst == 0 {
                self.due = Some(due);
                return None;
            }
            self.burst -= 1;
        }
        self.told = Some(end);
        self.last = (!is_first).then_some(now);
        self.due = None;
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwatched_output_is_not_told() {
        assert_eq!(Marks::new(false).at(7, Instant::now()), None);
    }

    #[test]
    fn marks_are_coalesced() {
        let (mut marks, t0) = (Marks::new(false), Instant::now());
        let step = Duration::from_millis(MARK_MS);
        marks.watch(true);
        assert_eq!(marks.at(0, t0), Some(0));
        assert_eq!(marks.at(5, t0), Some(5), "the first output");
        assert_eq!(marks.at(5, t0 + step), None, "nothing new");
        assert_eq!(marks.at(10, t0 + step / 2), None);
        assert_eq!(marks.deadline(), Some(t0 + step));
        assert_eq!(marks.at(30, t0 + step), Some(30));
        assert_eq!(marks.deadline(), None);
    }

    #[test]
    fn the_first_marks_after_an_input_are_told_at_once() {
        let (mut marks, t0) = (Marks::new(false), Instant::now());
        marks.watch(true);
        assert_eq!(marks.at(5, t0), Some(5), "the first mark");
        assert_eq!(marks.at(6, t0), Some(6), "the first output");
        assert_eq!(marks.at(7, t0), None, "what follows is coalesced");
        assert_eq!(marks.input(7, t0), Some(7), "told before the input");
        assert_eq!(marks.deadline(), None);
        for end in 8..12 {
            assert_eq!(marks.at(end, t0), Some(end), "the echo and the reply");
        }
        assert_eq!(marks.at(12, t0), None, "what follows is coalesced");
        assert_eq!(marks.deadline(), Some(t0 + Duration::from_millis(MARK_MS)));
        assert_eq!(marks.input(12, t0), Some(12));
        assert_eq!(marks.at(13, t0), Some(13));
    }

    #[test]
    fn marks_that_are_due_anyway_do_not_use_the_burst_up() {
        let (mut marks, t0) = (Marks::new(false), Instant::now());
        let step = Duration::from_millis(MARK_MS);
        marks.watch(true);
        assert_eq!(marks.at(5, t0), Some(5));
        assert_eq!(marks.input(5, t0), None, "nothing waits");
        for round in 1..10 {
            assert_eq!(
                marks.at(5 + u64::from(round), t0 + step * round),
                Some(5 + u64::from(round))
            );
        }
        assert_eq!(marks.at(20, t0 + step * 9), Some(20));
    }
}
