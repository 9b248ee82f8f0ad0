//! When a watching daemon is told of output: at most once per [`NOTIFY_INTERVAL_MS`], of a terminal's per
//! [`TERMINAL_NOTIFY_INTERVAL_MS`], at once where it answers input ([`INPUT_BURST`]), and never when nobody
//! watches.

use std::time::{Duration, Instant};

/// At most one mark of the journal's end in this time, in milliseconds.
const NOTIFY_INTERVAL_MS: u64 = 5;
/// The same of a terminal, in milliseconds: somebody may be looking on (C16).
const TERMINAL_NOTIFY_INTERVAL_MS: u64 = 1;
/// Marks after an input that are told at once: the terminal's echo, what the program answers, in
/// a few pieces, and its next prompt.
const INPUT_BURST: u32 = 4;

/// What was told, and what is to be told when.
#[derive(Debug)]
pub(crate) struct NotifyThrottle {
    interval: Duration,
    watched: bool,
    notified_end: Option<u64>,
    last_at: Option<Instant>,
    due: Option<Instant>,
    /// Marks that are told however soon they follow the one before.
    burst: u32,
}

impl NotifyThrottle {
    /// Nobody watches yet.
    pub(crate) const fn new(terminal: bool) -> Self {
        let interval = if terminal {
            TERMINAL_NOTIFY_INTERVAL_MS
        } else {
            NOTIFY_INTERVAL_MS
        };
        Self {
            interval: Duration::from_millis(interval),
            watched: false,
            notified_end: None,
            last_at: None,
            due: None,
            burst: 0,
        }
    }

    /// Somebody begins or ceases to watch; the first mark comes at once, and so does the
    /// first output after it.
    pub(crate) fn set_watched(&mut self, watched: bool) {
        *self = Self {
            interval: self.interval,
            watched,
            notified_end: None,
            last_at: None,
            due: None,
            burst: 0,
        };
    }

    /// Input is about to be written: what follows it is told at once, like an echo. What waits
    /// to be told is told before it.
    pub(crate) fn on_input(&mut self, end: u64, now: Instant) -> Option<u64> {
        self.burst = INPUT_BURST;
        let pending = self.on_output(end, now);
        self.burst = INPUT_BURST;
        pending
    }

    /// When the next mark is to be told, if output waits to be.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The journal ends at `end` now: what to tell now, if anything.
    pub(crate) fn on_output(&mut self, end: u64, now: Instant) -> Option<u64> {
        if !self.watched || self.notified_end == Some(end) {
            return None;
        }
        let is_first = self.notified_end.is_none();
        let due = self.last_at.map(|last| last + self.interval);
        if let Some(due) = due.filter(|due| now < *due) {
            if self.burst == 0 {
                self.due = Some(due);
                return None;
            }
            self.burst -= 1;
        }
        self.notified_end = Some(end);
        self.last_at = (!is_first).then_some(now);
        self.due = None;
        self.notified_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwatched_output_is_not_told() {
        assert_eq!(
            NotifyThrottle::new(false).on_output(7, Instant::now()),
            None
        );
    }

    #[test]
    fn marks_are_coalesced() {
        let (mut marks, t0) = (NotifyThrottle::new(false), Instant::now());
        let step = Duration::from_millis(NOTIFY_INTERVAL_MS);
        marks.set_watched(true);
        assert_eq!(marks.on_output(0, t0), Some(0));
        assert_eq!(marks.on_output(5, t0), Some(5), "the first output");
        assert_eq!(marks.on_output(5, t0 + step), None, "nothing new");
        assert_eq!(marks.on_output(10, t0 + step / 2), None);
        assert_eq!(marks.deadline(), Some(t0 + step));
        assert_eq!(marks.on_output(30, t0 + step), Some(30));
        assert_eq!(marks.deadline(), None);
    }

    #[test]
    fn the_first_marks_after_an_input_are_told_at_once() {
        let (mut marks, t0) = (NotifyThrottle::new(false), Instant::now());
        marks.set_watched(true);
        assert_eq!(marks.on_output(5, t0), Some(5), "the first mark");
        assert_eq!(marks.on_output(6, t0), Some(6), "the first output");
        assert_eq!(marks.on_output(7, t0), None, "what follows is coalesced");
        assert_eq!(marks.on_input(7, t0), Some(7), "told before the input");
        assert_eq!(marks.deadline(), None);
        for end in 8..12 {
            assert_eq!(
                marks.on_output(end, t0),
                Some(end),
                "the echo and the reply"
            );
        }
        assert_eq!(marks.on_output(12, t0), None, "what follows is coalesced");
        assert_eq!(
            marks.deadline(),
            Some(t0 + Duration::from_millis(NOTIFY_INTERVAL_MS))
        );
        assert_eq!(marks.on_input(12, t0), Some(12));
        assert_eq!(marks.on_output(13, t0), Some(13));
    }

    #[test]
    fn marks_that_are_due_anyway_do_not_use_the_burst_up() {
        let (mut marks, t0) = (NotifyThrottle::new(false), Instant::now());
        let step = Duration::from_millis(NOTIFY_INTERVAL_MS);
        marks.set_watched(true);
        assert_eq!(marks.on_output(5, t0), Some(5));
        assert_eq!(marks.on_input(5, t0), None, "nothing waits");
        for round in 1..10 {
            assert_eq!(
                marks.on_output(5 + u64::from(round), t0 + step * round),
                Some(5 + u64::from(round))
            );
        }
        assert_eq!(marks.on_output(20, t0 + step * 9), Some(20));
    }
}
