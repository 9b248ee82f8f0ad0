//! Console output for people and CI.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// It passed.
    Holds,
    /// It failed; the reasons were printed already.
    Fails,
}

impl CheckResult {
    /// `Holds` for true.
    pub(crate) const fn from_success(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

impl From<CheckResult> for ExitCode {
    fn from(verdict: CheckResult) -> Self {
        match verdict {
            CheckResult::Holds => Self::SUCCESS,
            CheckResult::Fails => Self::FAILURE,
        }
    }
}

thread_local! {
    /// What stands before the lines that this thread prints.
    static LINE_PREFIX: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// The last lines that this thread printed.
    static LAST_LINES: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// The number of lines kept of each thread.
const LAST_LINES_LIMIT: usize = 60;

/// The last lines that this thread printed, at most [`LAST_LINES_LIMIT`].
pub(crate) fn last_lines() -> Vec<String> {
    LAST_LINES.with_borrow(|lines| lines.iter().cloned().collect())
}

/// Begins every line that this thread prints from now on with a name: threads print at the same
/// time.
pub(crate) fn set_line_prefix(name: &'static str) {
    LINE_PREFIX.set(Some(name));
}

/// Prints one line. A reader that closed standard output is not an error.
pub(crate) fn print_line(line: fmt::Arguments<'_>) {
    LAST_LINES.with_borrow_mut(|lines| {
        if lines.len() == LAST_LINES_LIMIT {
            lines.pop_front();
        }
        lines.push_back(line.to_string());
    });
    let mut out = io::stdout().lock();
    let written = match LINE_PREFIX.get() {
        Some(name) => writeln!(out, "{name:<11} | {line}"),
        None => writeln!(out, "{line}"),
    };
    let _gone = written.and_then(|()| out.flush());
}

/// Prints a heading between steps.
pub(crate) fn heading(title: &str) {
    print_line(format_args!("\n=== {title} ==="));
}

/// The text without terminal colours, to be parsed.
pub(crate) fn strip_ansi(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            let _sequence: String = chars
                .by_ref()
                .take_while(|c| !c.is_ascii_alphabetic())
                .collect();
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed_and_text_stays() {
        assert_eq!(
            strip_ansi("\u{1b}[32;1m12 passed\u{1b}[0m, 1"),
            "12 passed, 1"
        );
    }
}
