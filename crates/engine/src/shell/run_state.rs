//! The state machine of one shell command, over the observations since it was typed. No clock, no
//! I/O.

/// The number of consecutive inspections that must find the shell at its prompt before missing
/// markers count: the first may happen before the shell has read the typed text.
const INSPECTIONS_MIN: u32 = 2;

/// One observation. Only markers with the right nonce are passed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunInput {
    /// Output arrived.
    Output,
    /// Marker C: a command began, its output begins at `to`.
    CommandStarted {
        /// The offset of the marker's end.
        to: u64,
    },
    /// Marker D: a command ended, its output ended at `from`.
    CommandEnded {
        /// The offset of the marker's beginning.
        from: u64,
        /// Its exit status, if reported.
        status: Option<i32>,
    },
    /// The working directory was reported directly after an end: by a hook of the shell, not by a
    /// redrawn prompt.
    DirectoryReported,
    /// Marker A: a prompt.
    PromptShown,
    /// Marker A of a continuation prompt.
    ContinuationPrompt,
    /// The kernel was inspected after some silence.
    Inspected(ShellInspection),
    /// The caller's timeout expired.
    TimedOut,
    /// The execution has ended, or its output cannot be read any further.
    SessionOver,
}

/// The result of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellInspection {
    /// The shell waits in its line editor.
    AtPrompt,
    /// A process waits for an answer: a program, or the shell's `read`.
    Question,
    /// No process waits for input.
    NotWaiting,
    /// The shell has executed another program (`exec`).
    Replaced,
}

/// The outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOutcome {
    Finished {
        /// The exit status.
        status: i32,
    },
    Question,
    Incomplete,
    NoMarker,
    ShellEnded,
    TimedOut,
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommandEnd {
    at: u64,
    status: Option<i32>,
}

/// The state of one script.
#[derive(Debug, Clone, Default)]
pub(super) struct RunProgress {
    /// Whether the shell reads it as one piece: the first prompt after it is then the last one.
    one_piece: bool,
    /// The offset at which its output begins.
    started: Option<u64>,
    /// Whether `started` comes from the caller, not from a marker.
    resumed: bool,
    /// Whether the shell's first command has not begun.
    before_first: bool,
    /// An end without a beginning, tentative until it is clear that no prompt was redrawn.
    tentative_end: Option<CommandEnd>,
    ended: Option<CommandEnd>,
    /// Whether the working directory was reported with the end.
    directory_reported: bool,
    has_output: bool,
    prompt_shown: bool,
    continuation: bool,
    /// Consecutive inspections that found the shell at its prompt.
    inspections: u32,
}

impl RunProgress {
    /// The state after a script was typed.
    pub(super) fn after_typing(one_piece: bool) -> Self {
        Self {
            one_piece,
            ..Self::default()
        }
    }

    /// The state of a command whose output began at `from`, or that was typed there.
    pub(super) fn resume(from: u64) -> Self {
        Self {
            one_piece: true,
            started: Some(from),
            resumed: true,
            ..Self::default()
        }
    }

    /// Applies an observation; returns the outcome once it is known.
    pub(super) fn handle(&mut self, input: RunInput) -> Option<RunOutcome> {
        match input {
            RunInput::Output => {
                self.has_output = true;
                self.inspections = 0;
                None
            }
            RunInput::CommandStarted { to } => {
                self.on_started(to);
                None
            }
            RunInput::CommandEnded { from, status } => {
                self.on_ended(CommandEnd { at: from, status });
                None
            }
            RunInput::DirectoryReported => {
                self.on_directory();
                None
            }
            RunInput::PromptShown => {
                self.prompt_shown = true;
                self.continuation = false;
                self.tentative_end = None;
                self.ended
                    .filter(|_| self.one_piece)
                    .map(|end| finished_with(end.status))
            }
            RunInput::ContinuationPrompt => {
                self.continuation = true;
                self.prompt_shown = false;
                self.one_piece.then_some(RunOutcome::Incomplete)
            }
            RunInput::Inspected(inspection) => self.on_inspected(inspection),
            RunInput::TimedOut if self.continuation => Some(RunOutcome::Incomplete),
            RunInput::TimedOut => Some(
                self.ended
                    .map_or(RunOutcome::TimedOut, |end| finished_with(end.status)),
            ),
            RunInput::SessionOver => Some(RunOutcome::ShellEnded),
        }
    }

    /// The offset at which the output begins, if known.
    pub(super) const fn output_start(&self) -> Option<u64> {
        self.started
    }

    /// The offset at which the output ended, if known.
    pub(super) fn output_end(&self) -> Option<u64> {
        self.ended.map(|end| end.at)
    }

    /// Whether the last reported working directory is that after the command.
    pub(super) const fn has_directory(&self) -> bool {
        self.directory_reported
    }

    /// Whether the shell rejected the script: it ended without a beginning and without a new
    /// prompt, so that fish still shows it.
    pub(super) const fn is_refused(&self) -> bool {
        self.started.is_none() && self.ended.is_some() && !self.prompt_shown
    }

    /// Whether the prompt is shown again.
    pub(super) const fn is_prompt_back(&self) -> bool {
        self.prompt_shown
    }

    /// A script typed in several pieces begins line by line; the output begins with the first.
    fn on_started(&mut self, to: u64) {
        if self.resumed && self.ended.is_none() {
            self.started = Some(to);
        }
        self.resumed = false;
        self.before_first = false;
        self.started.get_or_insert(to);
        self.ended = None;
        self.tentative_end = None;
        self.directory_reported = false;
        self.prompt_shown = false;
        self.continuation = false;
    }

    fn on_ended(&mut self, end: CommandEnd) {
        if self.resumed && end.status.is_none() {
            // Only the end before the shell's first prompt has no status; that prompt repeats it.
            self.before_first = true;
        }
        if self.before_first {
            // No command has begun yet.
        } else if self.ended.is_some() {
            // A redrawn prompt repeats the marker.
        } else if self.started.is_some() {
            self.ended = Some(end);
        } else {
            self.tentative_end = Some(end);
        }
    }

    fn on_directory(&mut self) {
        self.ended = self.ended.or(self.tentative_end.take());
        self.directory_reported |= self.ended.is_some();
    }

    fn on_inspected(&mut self, inspection: ShellInspection) -> Option<RunOutcome> {
        match inspection {
            ShellInspection::AtPrompt => {
                self.inspections += 1;
                self.on_at_prompt()
            }
            ShellInspection::Question => {
                self.inspections = 0;
                let ended = self.ended.map(|end| finished_with(end.status));
                Some(ended.unwrap_or(RunOutcome::Question))
            }
            ShellInspection::NotWaiting => {
                self.inspections = 0;
                None
            }
            ShellInspection::Replaced => Some(RunOutcome::ShellEnded),
        }
    }

    /// The shell waits for a command, or for the rest of one.
    fn on_at_prompt(&self) -> Option<RunOutcome> {
        if self.continuation {
            return Some(RunOutcome::Incomplete);
        }
        if let Some(end) = self.ended {
            return Some(finished_with(end.status));
        }
        if self.inspections < INSPECTIONS_MIN {
            return None;
        }
        if self.started.is_some() || self.prompt_shown {
            return Some(RunOutcome::NoMarker);
        }
        // It accepted the text, did not start it and shows no continuation prompt: fish starts a
        // new line.
        self.has_output.then_some(RunOutcome::Incomplete)
    }
}

fn finished_with(status: Option<i32>) -> RunOutcome {
    status.map_or(RunOutcome::NoMarker, |status| RunOutcome::Finished {
        status,
    })
}
