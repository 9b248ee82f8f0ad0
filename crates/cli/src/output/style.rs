//! Colours, where somebody looks.

use std::io::IsTerminal;

use ostler_model::status::ProcessStatus;

use crate::config::Environment;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BLUE: &str = "\x1b[34m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// Plain text.
    pub(crate) const PLAIN: Self = Self { colour: false };

    /// Coloured when `stream` is a terminal, `NO_COLOR` is unset and the terminal is no dumb one.
    pub(crate) fn of(stream: &impl IsTerminal, env: &Environment) -> Self {
        let dumb = env.get("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: stream.is_terminal() && env.get("NO_COLOR").is_none() && !dumb,
        }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        if self.colour {
            format!("{colour}{text}{RESET}")
        } else {
            text.to_owned()
        }
    }

    /// Text that steps back.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(DIM, text)
    }

    /// Text that warns.
    pub(crate) fn error(self, text: &str) -> String {
        self.paint(RED, text)
    }

    /// A service's status in its colour.
    pub(crate) fn service(self, status: &str) -> String {
        let colour = match status {
            "ready" => GREEN,
            "running" => BLUE,
            "failed" | "crash_looping" => RED,
            "stopped" => DIM,
            _ => YELLOW,
        };
        self.paint(colour, status)
    }

    /// A status in its colour.
    pub(crate) fn status(self, status: ProcessStatus) -> String {
        let colour = match status {
            ProcessStatus::Running => BLUE,
            ProcessStatus::Completed => GREEN,
            ProcessStatus::Terminated => YELLOW,
            ProcessStatus::Failed | ProcessStatus::Error => RED,
        };
        self.paint(colour, status.as_str())
    }
}
