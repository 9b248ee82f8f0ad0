//! Colours, where somebody looks.

use std::io::{self, IsTerminal};

use ostler_model::Colours;
use ostler_model::status::ProcessStatus;

use super::line::{Colour, Line};
use crate::config::Environment;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// For standard output: coloured when that is a terminal, `NO_COLOR` is unset and the
    /// terminal is no dumb one.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn of_stdout(env: &Environment) -> Self {
        Self::of(&io::stdout(), env)
    }

    /// For standard error.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn of_stderr(env: &Environment) -> Self {
        Self::of(&io::stderr(), env)
    }

    /// Whether somebody looks at standard error.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn is_stderr_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Whether somebody looks at standard output.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn is_stdout_terminal() -> bool {
        io::stdout().is_terminal()
    }

    fn of(stream: &impl IsTerminal, env: &Environment) -> Self {
        let dumb = env.get("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: stream.is_terminal() && env.get("NO_COLOR").is_none() && !dumb,
        }
    }

    fn paint(self, colour: Colour, text: &str) -> Line {
        Line::coloured(self.colour.then_some(colour), text)
    }

    /// What becomes of the colours of programs whose output is shown.
    pub(crate) const fn colours(self) -> Colours {
        match self.colour {
            true => Colours::Kept,
            false => Colours::Dropped,
        }
    }

    /// The colour of output that warns.
    pub(crate) fn warning(self) -> Option<Colour> {
        self.colour.then_some(Colour::Red)
    }

    /// Text that steps back.
    pub(crate) fn dim(self, text: &str) -> Line {
        self.paint(Colour::Dim, text)
    }

    /// A service's status in its colour.
    pub(crate) fn service(self, status: &str) -> Line {
        let colour = match status {
            "ready" => Colour::Green,
            "running" => Colour::Blue,
            "failed" | "crash_looping" => Colour::Red,
            "stopped" => Colour::Dim,
            _ => Colour::Yellow,
        };
        self.paint(colour, status)
    }

    /// A status in its colour.
    pub(crate) fn status(self, status: ProcessStatus) -> Line {
        let colour = match status {
            ProcessStatus::Running => Colour::Blue,
            ProcessStatus::Completed => Colour::Green,
            ProcessStatus::Terminated => Colour::Yellow,
            ProcessStatus::Failed | ProcessStatus::Error => Colour::Red,
        };
        self.paint(colour, status.as_str())
    }
}
