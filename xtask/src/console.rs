//! Console output for people and CI.

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

/// Prints one line. A reader that closed standard output is not an error.
pub(crate) fn print_line(line: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let _gone = writeln!(out, "{line}").and_then(|()| out.flush());
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
