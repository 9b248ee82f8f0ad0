//! Throttles notices of new output to a watching daemon: at most one per [`NOTIFY_INTERVAL_MS`],
//! for a terminal per [`TERMINAL_NOTIFY_INTERVAL_MS`], at once where output follows input
//! ([`INPUT_BURST`]), and none when no daemon watches.

use std::time::{Duration, Instant};

/// The least interval of notices of the journal's end, in milliseconds.
const NOTIFY_INTERVAL_MS: u64 = 5;
/// The same for a terminal, in milliseconds: a person may be watching it.
const TERMINAL_NOTIFY_INTERVAL_MS: u64 = 1;
/// Notices after an input that are sent at once: the terminal's echo, the program's response in a
/// few pieces, and its next prompt.
const INPUT_BURST: u32 = 4;

/// The last reported end, and when the next notification is due.
#[derive(Debug)]
pub(crate) struct NotifyThrottle {
    interval: Duration,
    watched: bool,
    notified_end: Option<u64>,
    last_at: Option<Instant>,
    due: Option<Instant>,
    /// Notices that are sent however soon they follow the previous one.
    burst: u32,
}

impl NotifyThrottle {
    /// The initial state: not watched.
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

    /// Starts or stops watching; the first notice comes at once, and so does the first output after
    /// it.
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

    /// Announces that input is about to be written: what follows it is reported at once, like an
    /// echo. Returns the pending notice, which is sent first.
    pub(crate) fn on_input(&mut self, end: u64, now: Instant) -> Option<u64> {
        self.burst = INPUT_BURST;
        let pending = self.on_output(end, now);
        self.burst = INPUT_BURST;
        pending
    }

    /// When the next notice is due, if output is pending.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Records that the journal ends at `end` now; returns the offset to report, if one is due.
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
    fn unwatched_output_is_not_reported() {
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
    fn the_first_notifications_after_an_input_are_sent_at_once() {
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
