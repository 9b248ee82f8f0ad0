//! What a [`ShellRunner`](super::runner::ShellRunner) waits for, and when it inspects the shell.

use std::time::Duration;

use ostler_journal::query::BytePage;
use ostler_terminal::{ControlEvent, LocatedEvent};
use tokio::time::Instant;

use super::run_state::RunInput;

/// Silence before the waiting processes are inspected, in milliseconds.
pub(super) const QUIET_MS: u64 = 150;
/// The longest time between two inspections of a silent shell, in milliseconds; each inspection
/// without a result doubles it from [`QUIET_MS`].
const INSPECT_MAX_MS: u64 = 2_000;

/// An event of the follower or of an inspection.
pub(super) enum RunnerEvent {
    Page(BytePage),
    Ended,
    Inspect,
    TimedOut,
}

/// When to inspect.
#[derive(Debug, Clone, Copy)]
pub(super) struct InspectionSchedule {
    pause: Duration,
    pub(super) due: Instant,
    pub(super) deadline: Instant,
}

impl InspectionSchedule {
    pub(super) fn new(deadline: Instant) -> Self {
        let pause = Duration::from_millis(QUIET_MS);
        Self {
            pause,
            due: Instant::now() + pause,
            deadline,
        }
    }

    /// Restarts the interval after output.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.deadline);
    }

    /// Doubles the interval after an inspection without a result.
    pub(super) fn back_off(&mut self) {
        self.pause = (self.pause * 2).min(Duration::from_millis(INSPECT_MAX_MS));
        self.due = Instant::now() + self.pause;
    }
}

/// The observation in a marker.
pub(super) const fn input_from_mark(marked: &LocatedEvent) -> Option<RunInput> {
    match &marked.event {
        ControlEvent::CommandStart { is_trusted: true } => {
            Some(RunInput::CommandStarted { to: marked.to })
        }
        ControlEvent::CommandEnd {
            is_trusted: true,
            status,
        } => Some(RunInput::CommandEnded {
            from: marked.from,
            status: *status,
        }),
        ControlEvent::PromptStart {
            is_trusted: true,
            continuation: false,
        } => Some(RunInput::PromptShown),
        ControlEvent::PromptStart {
            is_trusted: true,
            continuation: true,
        } => Some(RunInput::ContinuationPrompt),
        ControlEvent::Directory(_) => Some(RunInput::DirectoryReported),
        ControlEvent::PromptStart {
            is_trusted: false, ..
        }
        | ControlEvent::PromptEnd { .. }
        | ControlEvent::CommandStart { is_trusted: false }
        | ControlEvent::CommandEnd {
            is_trusted: false, ..
        }
        | ControlEvent::Title(_)
        | ControlEvent::Modes(_) => None,
    }
}
