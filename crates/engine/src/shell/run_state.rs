//! The state machine of one shell command, over the observations since it was typed. No clock, no
//! I/O.

/// Looks in a row that must find the shell at its prompt before the want of marks means
/// anything: the first may come before it has read what was typed.
const INSPECTIONS_MIN: u32 = 2;

/// One thing that was seen. Only believed marks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunInput {
    /// Output came, whatever it was.
    Output,
    /// Mark C: a command began, its output begins at `to`.
    CommandStarted {
        /// The mark's end.
        to: u64,
    },
    /// Mark D: a command ended, its output ended at `from`.
    CommandEnded {
        /// The mark's beginning.
        from: u64,
        /// How, where that was told.
        status: Option<i32>,
    },
    /// The working directory, right after an end: it was a hook that told, not a prompt that
    /// was painted again.
    DirectoryReported,
    /// Mark A: a prompt.
    PromptShown,
    /// Mark A of a continuation prompt.
    ContinuationPrompt,
    /// A look at who waits for input, after some silence.
    Inspected(ShellInspection),
    /// The caller's time ran out.
    TimedOut,
    /// The execution is over, or its output cannot be read further.
    SessionOver,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellInspection {
    /// The shell waits in its line editor.
    AtPrompt,
    /// Somebody waits for an answer: a program, or the shell on behalf of `read`.
    Question,
    /// Nobody waits for input.
    NotWaiting,
    /// What was the shell is another program now (`exec`).
    Replaced,
}

/// What became of the script.
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

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommandEnd {
    at: u64,
    status: Option<i32>,
}

/// A script under way.
#[derive(Debug, Clone, Default)]
pub(super) struct RunProgress {
    /// Whether the shell got it in one piece: then the first prompt after it is the last.
    one_piece: bool,
    /// Where its output begins.
    started: Option<u64>,
    /// Whether that was not seen but said by the caller.
    resumed: bool,
    /// An end without a beginning, until it is known that no prompt was painted again.
    tentative_end: Option<CommandEnd>,
    ended: Option<CommandEnd>,
    /// Whether the working directory was told with the end.
    directory_reported: bool,
    has_output: bool,
    prompt_shown: bool,
    continuation: bool,
    /// Looks in a row that found the shell at its prompt.
    inspections: u32,
}

impl RunProgress {
    /// A script was typed.
    pub(super) fn after_typing(one_piece: bool) -> Self {
        Self {
            one_piece,
            ..Self::default()
        }
    }

    /// A command goes on whose output began at `from`, or that was typed there.
    pub(super) fn resume(from: u64) -> Self {
        Self {
            one_piece: true,
            started: Some(from),
            resumed: true,
            ..Self::default()
        }
    }

    /// Takes a fact in; what became of the script, once that is known.
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

    /// Where the output begins, if it did.
    pub(super) const fn output_start(&self) -> Option<u64> {
        self.started
    }

    /// Where the output ended, if it did.
    pub(super) fn output_end(&self) -> Option<u64> {
        self.ended.map(|end| end.at)
    }

    /// Whether the working directory that was told last is that after the command.
    pub(super) const fn has_directory(&self) -> bool {
        self.directory_reported
    }

    /// Whether it ended without a beginning or a new prompt: fish has it at its prompt still.
    pub(super) const fn is_refused(&self) -> bool {
        self.started.is_none() && self.ended.is_some() && !self.prompt_shown
    }

    /// Whether the prompt is back.
    pub(super) const fn is_prompt_back(&self) -> bool {
        self.prompt_shown
    }

    /// Lines that were not typed as one begin one by one; the output begins with the first.
    fn on_started(&mut self, to: u64) {
        if self.resumed && self.ended.is_none() {
            self.started = Some(to);
        }
        self.resumed = false;
        self.started.get_or_insert(to);
        self.ended = None;
        self.tentative_end = None;
        self.directory_reported = false;
        self.prompt_shown = false;
        self.continuation = false;
    }

    fn on_ended(&mut self, end: CommandEnd) {
        if self.ended.is_some() {
            // The prompt says it once more.
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
        // It took the text and neither began nor asks: fish goes on to the next line.
        self.has_output.then_some(RunOutcome::Incomplete)
    }
}

fn finished_with(status: Option<i32>) -> RunOutcome {
    status.map_or(RunOutcome::NoMarker, |status| RunOutcome::Finished {
        status,
    })
}
