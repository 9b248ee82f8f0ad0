//! What became of a script, from what was seen since it was typed. No clock, no I/O.

/// Looks in a row that must find the shell at its prompt before the want of marks means
/// anything: the first may come before it has read what was typed.
const LOOKS: u32 = 2;

/// One thing that was seen. Only believed marks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    /// Output came, whatever it was.
    Printed,
    /// Mark C: a command began, its output begins at `to`.
    Started {
        /// The mark's end.
        to: u64,
    },
    /// Mark D: a command ended, its output ended at `from`.
    Ended {
        /// The mark's beginning.
        from: u64,
        /// How, where that was told.
        status: Option<i32>,
    },
    /// The working directory, right after an end: it was a hook that told, not a prompt that
    /// was painted again.
    Told,
    /// Mark A: a prompt.
    Asked,
    /// Mark A of a continuation prompt.
    WantsMore,
    /// A look at who waits for input, after some silence.
    Seen(Seen),
    /// The caller's time ran out.
    TimeUp,
    /// The execution is over, or its output cannot be read further.
    Over,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// The shell waits in its line editor.
    AtPrompt,
    /// Somebody waits for an answer: a program, or the shell on behalf of `read`.
    Question,
    /// Nobody waits for input.
    Nobody,
    /// What was the shell is another program now (`exec`).
    Replaced,
}

/// What became of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As [`ShellEnd::Finished`](super::ShellEnd::Finished).
    Finished {
        /// The exit status.
        status: i32,
    },
    /// As [`ShellEnd::Prompt`](super::ShellEnd::Prompt).
    Question,
    /// As [`ShellEnd::Incomplete`](super::ShellEnd::Incomplete).
    Incomplete,
    /// As [`ShellEnd::Silent`](super::ShellEnd::Silent).
    Silent,
    /// As [`ShellEnd::ShellEnded`](super::ShellEnd::ShellEnded).
    ShellEnded,
    /// As [`ShellEnd::AtMost`](super::ShellEnd::AtMost).
    AtMost,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    at: u64,
    status: Option<i32>,
}

/// A script under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// Whether the shell got it in one piece: then the first prompt after it is the last.
    whole: bool,
    /// Where its output begins.
    started: Option<u64>,
    /// Whether that was not seen but said by the caller.
    resumed: bool,
    /// An end without a beginning, until it is known that no prompt was painted again.
    rumour: Option<End>,
    ended: Option<End>,
    /// Whether the working directory was told with the end.
    told: bool,
    printed: bool,
    asked: bool,
    wants_more: bool,
    /// Looks in a row that found the shell at its prompt.
    looks: u32,
}

impl Progress {
    /// A script was typed.
    pub(super) fn typed(whole: bool) -> Self {
        Self {
            whole,
            ..Self::default()
        }
    }

    /// A command goes on whose output began at `from`, or that was typed there.
    pub(super) fn resumed(from: u64) -> Self {
        Self {
            whole: true,
            started: Some(from),
            resumed: true,
            ..Self::default()
        }
    }

    /// Takes a fact in; what became of the script, once that is known.
    pub(super) fn take(&mut self, fact: Fact) -> Option<Verdict> {
        match fact {
            Fact::Printed => {
                self.printed = true;
                self.looks = 0;
                None
            }
            Fact::Started { to } => {
                self.start(to);
                None
            }
            Fact::Ended { from, status } => {
                self.end(End { at: from, status });
                None
            }
            Fact::Told => {
                self.tell();
                None
            }
            Fact::Asked => {
                self.asked = true;
                self.wants_more = false;
                self.rumour = None;
                self.ended
                    .filter(|_| self.whole)
                    .map(|end| finished(end.status))
            }
            Fact::WantsMore => {
                self.wants_more = true;
                self.asked = false;
                self.whole.then_some(Verdict::Incomplete)
            }
            Fact::Seen(seen) => self.see(seen),
            Fact::TimeUp if self.wants_more => Some(Verdict::Incomplete),
            Fact::TimeUp => Some(
                self.ended
                    .map_or(Verdict::AtMost, |end| finished(end.status)),
            ),
            Fact::Over => Some(Verdict::ShellEnded),
        }
    }

    /// Where the output begins, if it did.
    pub(super) const fn started(&self) -> Option<u64> {
        self.started
    }

    /// Where the output ended, if it did.
    pub(super) fn ended(&self) -> Option<u64> {
        self.ended.map(|end| end.at)
    }

    /// Whether the working directory that was told last is that after the command.
    pub(super) const fn told(&self) -> bool {
        self.told
    }

    /// Whether it ended without a beginning or a new prompt: fish has it at its prompt still.
    pub(super) const fn is_refused(&self) -> bool {
        self.started.is_none() && self.ended.is_some() && !self.asked
    }

    /// Whether the prompt is back.
    pub(super) const fn is_back(&self) -> bool {
        self.asked
    }

    /// Lines that were not typed as one begin one by one; the output begins with the first.
    fn start(&mut self, to: u64) {
        if self.resumed && self.ended.is_none() {
            self.started = Some(to);
        }
        self.resumed = false;
        self.started.get_or_insert(to);
        self.ended = None;
        self.rumour = None;
        self.told = false;
        self.asked = false;
        self.wants_more = false;
    }

    fn end(&mut self, end: End) {
        if self.ended.is_some() {
            // The prompt says it once more.
        } else if self.started.is_some() {
            self.ended = Some(end);
        } else {
            self.rumour = Some(end);
        }
    }

    fn tell(&mut self) {
        self.ended = self.ended.or(self.rumour.take());
        self.told |= self.ended.is_some();
    }

    fn see(&mut self, seen: Seen) -> Option<Verdict> {
        match seen {
            Seen::AtPrompt => {
                self.looks += 1;
                self.at_prompt()
            }
            Seen::Question => {
                self.looks = 0;
                let ended = self.ended.map(|end| finished(end.status));
                Some(ended.unwrap_or(Verdict::Question))
            }
            Seen::Nobody => {
                self.looks = 0;
                None
            }
            Seen::Replaced => Some(Verdict::ShellEnded),
        }
    }

    /// The shell waits for a command, or for the rest of one.
    fn at_prompt(&self) -> Option<Verdict> {
        if self.wants_more {
            return Some(Verdict::Incomplete);
        }
        if let Some(end) = self.ended {
            return Some(finished(end.status));
        }
        if self.looks < LOOKS {
            return None;
        }
        if self.started.is_some() || self.asked {
            return Some(Verdict::Silent);
        }
        // It took the text and neither began nor asks: fish goes on to the next line.
        self.printed.then_some(Verdict::Incomplete)
    }
}

fn finished(status: Option<i32>) -> Verdict {
    status.map_or(Verdict::Silent, |status| Verdict::Finished { status })
}
