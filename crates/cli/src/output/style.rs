//! Colours on terminals.

use std::io::{self, IsTerminal};

use ostler_model::ColourMode;
use ostler_model::status::ProcessStatus;

use super::styled_line::{Colour, StyledLine};
use crate::process_env::ProcessEnv;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

fn is_dumb(env: &ProcessEnv) -> bool {
    env.get("TERM").is_some_and(|term| term == "dumb")
}

impl Style {
    /// For standard output: coloured when that is a terminal, `NO_COLOR` is unset and `TERM` is not
    /// `dumb`.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn of_stdout(env: &ProcessEnv) -> Self {
        Self::for_stream(&io::stdout(), env)
    }

    /// For standard error.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn of_stderr(env: &ProcessEnv) -> Self {
        Self::for_stream(&io::stderr(), env)
    }

    /// Whether standard error is a terminal.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn is_stderr_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Whether standard output is a terminal.
    #[expect(clippy::disallowed_methods, reason = "it is only looked at")]
    pub(crate) fn is_stdout_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Whether standard output is a terminal that moves its cursor: one with `TERM=dumb` does not.
    pub(crate) fn is_stdout_screen(env: &ProcessEnv) -> bool {
        Self::is_stdout_terminal() && !is_dumb(env)
    }

    fn for_stream(stream: &impl IsTerminal, env: &ProcessEnv) -> Self {
        Self {
            colour: stream.is_terminal() && env.get("NO_COLOR").is_none() && !is_dumb(env),
        }
    }

    fn paint(self, colour: Colour, text: &str) -> StyledLine {
        StyledLine::coloured(self.colour.then_some(colour), text)
    }

    /// What happens to the colours in the output of programs.
    pub(crate) const fn colours(self) -> ColourMode {
        match self.colour {
            true => ColourMode::Keep,
            false => ColourMode::Strip,
        }
    }

    /// The colour of warnings.
    pub(crate) fn warning(self) -> Option<Colour> {
        self.colour.then_some(Colour::Red)
    }

    /// Dimmed text.
    pub(crate) fn dim(self, text: &str) -> StyledLine {
        self.paint(Colour::Dim, text)
    }

    /// The severity of a diagnostic, or the outcome of a test.
    pub(crate) fn severity(self, word: &str) -> StyledLine {
        let colour = match word {
            "error" | "failed" => Colour::Red,
            "warning" | "flaky" => Colour::Yellow,
            _ => Colour::Dim,
        };
        self.paint(colour, word)
    }

    /// A service's status in its colour.
    pub(crate) fn service(self, status: &str) -> StyledLine {
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
    pub(crate) fn status(self, status: ProcessStatus) -> StyledLine {
        let colour = match status {
            ProcessStatus::Running => Colour::Blue,
            ProcessStatus::Completed => Colour::Green,
            ProcessStatus::Terminated => Colour::Yellow,
            ProcessStatus::Failed | ProcessStatus::Error => Colour::Red,
        };
        self.paint(colour, status.as_str())
    }
}
