//! Derives a shell's state from the markers in its output.

use ostler_journal::query::{BytePage, Chunk};
use ostler_journal::{ByteQuery, Journal};
use ostler_model::Cursor;
use ostler_terminal::{ControlEvent, LocatedEvent, Modes, Scanner, Screen, ShellState};

use super::run_state::RunInput;
use crate::error::Error;

/// How much of the end of the output is searched for the last markers, in bytes: first the smaller
/// size, where the prompt of a waiting shell usually is.
const TAILS_BYTES: [u64; 2] = [64 * 1024, 1024 * 1024];

/// The shell state derived from the output.
#[derive(Debug)]
pub(super) struct ShellScanner {
    scanner: Scanner,
    state: ShellState,
    /// Whether nothing before it was skipped.
    is_from_start: bool,
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
            is_from_start: offset == 0,
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

    /// The state on a screen, which is that of all its output, also where that is long or was
    /// dropped.
    pub(super) fn from_screen(screen: &Screen) -> Self {
        let state = screen.shell().clone();
        // The marks of one prompt come together, long before what made this screen necessary. Where
        // output was skipped, the state may be an earlier one.
        let prompt_end = match &state {
            ShellState::Prompt { since, .. } if screen.is_exact() => Some(*since),
            ShellState::Unknown
            | ShellState::Ended { .. }
            | ShellState::Prompt { .. }
            | ShellState::Incomplete { .. }
            | ShellState::Running { .. } => None,
        };
        Self {
            scanner: screen.scanner().clone(),
            state,
            is_from_start: screen.is_exact(),
            prompt_end,
            end: None,
            reported_end: None,
            free_since: None,
        }
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

    /// The marks of the end of a command whose output begins at `from`, where they were in output
    /// before what was scanned.
    pub(super) fn missed_marks(&self, from: u64) -> impl Iterator<Item = RunInput> {
        let (end, has_prompt) = match &self.state {
            ShellState::Prompt { since, status, .. } => (Some((*since, *status)), true),
            ShellState::Ended { since, status, .. } => (Some((*since, *status)), false),
            ShellState::Unknown | ShellState::Incomplete { .. } | ShellState::Running { .. } => {
                (None, false)
            }
        };
        let end = end.filter(|(since, _)| *since >= from);
        let prompt = (end.is_some() && has_prompt).then_some(RunInput::PromptShown);
        let directory = end.map(|_| RunInput::DirectoryReported);
        let end = end.map(|(from, status)| RunInput::CommandEnded { from, status });
        [end, directory, prompt].into_iter().flatten()
    }

    /// Whether the shell's marks are in output before what was scanned.
    pub(super) fn is_too_short(&self) -> bool {
        self.state == ShellState::Unknown && !self.is_from_start
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
