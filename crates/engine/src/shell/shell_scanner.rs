//! Derives a shell's state from the markers in its output.

use ostler_journal::query::{BytePage, Chunk};
use ostler_journal::{ByteQuery, Journal};
use ostler_model::Cursor;
use ostler_terminal::{ControlEvent, LocatedEvent, Modes, Scanner, ShellState};

use crate::error::Error;

/// How much of the end of the output is searched for the last markers, in bytes: first the smaller
/// size, where the prompt of a waiting shell usually is.
const TAILS_BYTES: [u64; 2] = [64 * 1024, 1024 * 1024];

/// The shell state derived from the output.
#[derive(Debug)]
pub(super) struct ShellScanner {
    scanner: Scanner,
    state: ShellState,
    /// The offset at which the current prompt ends.
    prompt_end: Option<u64>,
    /// The end of a command, and one that was reported by the shell's hook.
    end: Option<u64>,
    reported_end: Option<u64>,
    /// The offset since which no command runs and the prompt is empty, unless something was typed.
    free_since: Option<u64>,
}

impl ShellScanner {
    /// A scanner that knows nothing before `offset`.
    pub(super) fn starting_at(offset: u64, nonce: &str) -> Self {
        Self {
            scanner: Scanner::new(offset, Some(nonce)),
            state: ShellState::Unknown,
            prompt_end: None,
            end: None,
            reported_end: None,
            free_since: None,
        }
    }

    /// The state when the journal ended at `end`.
    pub(super) fn from_tail(journal: &Journal, nonce: &str, end: u64) -> Result<Self, Error> {
        let start = journal.start()?.min(end);
        let mut scan = Self::starting_at(end, nonce);
        for tail in TAILS_BYTES {
            let from = end.saturating_sub(tail).max(start);
            scan = Self::starting_at(from, nonce);
            scan.read(journal, end)?;
            if scan.state != ShellState::Unknown || from == start {
                break;
            }
        }
        Ok(scan)
    }

    fn read(&mut self, journal: &Journal, end: u64) -> Result<(), Error> {
        loop {
            let from = self.offset();
            let page = journal.read(&ByteQuery {
                until: Some(end),
                ..ByteQuery::starting_at(Cursor {
                    offset: from,
                    event: 0,
                })
            })?;
            self.feed(&page, |_| {});
            self.scanner.skip_to(page.next.offset);
            if !page.more || self.offset() <= from {
                return Ok(());
            }
        }
    }

    /// Scans a page and reports every marker.
    pub(super) fn feed(&mut self, page: &BytePage, mut on_mark: impl FnMut(&LocatedEvent)) {
        if let Some(gap) = page.gap {
            self.scanner.skip_to(gap.to);
        }
        for Chunk { offset, bytes, .. } in &page.chunks {
            if *offset > self.offset() {
                self.scanner.skip_to(*offset);
            }
            for marked in self.scanner.feed(bytes) {
                self.state.apply(&marked);
                self.apply_mark(&marked);
                on_mark(&marked);
            }
        }
    }

    fn apply_mark(&mut self, marked: &LocatedEvent) {
        match marked.event {
            ControlEvent::PromptEnd { is_trusted: true } => self.prompt_end = Some(marked.to),
            ControlEvent::PromptStart {
                is_trusted: true, ..
            } => {
                self.prompt_end = None;
                self.end = None;
                self.free_since = self.reported_end.take().or(self.free_since);
            }
            ControlEvent::CommandStart { is_trusted: true } => {
                self.prompt_end = None;
                self.reported_end = None;
                self.free_since = None;
            }
            ControlEvent::CommandEnd {
                is_trusted: true, ..
            } => {
                self.prompt_end = None;
                self.end = Some(marked.from);
            }
            // A redrawn prompt reports no directory.
            ControlEvent::Directory(_) => self.reported_end = self.end.take().or(self.reported_end),
            ControlEvent::PromptStart {
                is_trusted: false, ..
            }
            | ControlEvent::PromptEnd { is_trusted: false }
            | ControlEvent::CommandStart { is_trusted: false }
            | ControlEvent::CommandEnd {
                is_trusted: false, ..
            }
            | ControlEvent::Title(_)
            | ControlEvent::Modes(_) => {}
        }
    }

    pub(super) const fn state(&self) -> &ShellState {
        &self.state
    }

    pub(super) fn modes(&self) -> Modes {
        self.scanner.modes()
    }

    pub(super) fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// Whether the whole prompt is shown.
    pub(super) const fn is_prompt_shown(&self) -> bool {
        self.prompt_end.is_some()
    }

    /// Whether a whole prompt is shown that ends after this offset.
    pub(super) fn is_prompt_shown_after(&self, offset: u64) -> bool {
        self.prompt_end.is_some_and(|end| end > offset)
    }

    /// Input after this offset is at the current prompt.
    pub(super) fn free_since(&self) -> Option<u64> {
        self.free_since.or(self.prompt_end)
    }
}
