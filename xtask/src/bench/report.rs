//! The report: a table of results.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::machine::Machine;
use crate::console::print_line;

/// One row of the table.
#[derive(Debug, Clone)]
pub(super) struct ReportRow {
    /// What was measured.
    pub(super) what: String,
    /// The measured value with its unit.
    pub(super) value: String,
    /// The baseline of the same run with its unit; empty if the promise is absolute.
    pub(super) floor: String,
    /// The value divided by the baseline, or the figure of the promise.
    pub(super) figure: f64,
    /// The promise in words.
    pub(super) promise: &'static str,
    /// Whether the promise was kept.
    pub(super) holds: bool,
}

/// What a figure is promised to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promise {
    threshold: Threshold,
    /// The promise in words.
    text: &'static str,
}

impl Promise {
    /// Nothing is promised.
    pub(super) const NONE: Self = Self::at_most(f64::INFINITY, "none");

    pub(super) const fn at_most(limit: f64, text: &'static str) -> Self {
        let threshold = Threshold::AtMost(limit);
        Self { threshold, text }
    }

    pub(super) const fn at_least(limit: f64, text: &'static str) -> Self {
        let threshold = Threshold::AtLeast(limit);
        Self { threshold, text }
    }
}

/// The limit of a promise.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    /// The figure must not be larger.
    AtMost(f64),
    /// The figure must not be smaller.
    AtLeast(f64),
}

impl Threshold {
    fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtMost(limit) => figure <= limit,
            Self::AtLeast(limit) => figure >= limit,
        }
    }
}

impl ReportRow {
    /// A figure against its baseline; `unit` follows both values.
    pub(super) fn ratio(what: &str, value: f64, floor: f64, unit: &str, promise: Promise) -> Self {
        let figure = value / floor;
        Self {
            what: what.to_owned(),
            value: format!("{} {unit}", format_value(value)),
            floor: format!("{} {unit}", format_value(floor)),
            figure,
            promise: promise.text,
            holds: promise.threshold.holds(figure),
        }
    }

    /// A figure against an absolute limit.
    pub(super) fn absolute(what: &str, value: f64, unit: &str, promise: Promise) -> Self {
        Self {
            what: what.to_owned(),
            value: format!("{} {unit}", format_value(value)),
            floor: String::new(),
            figure: value,
            promise: promise.text,
            holds: promise.threshold.holds(value),
        }
    }
}

/// Formats three significant digits: a noisy machine allows no more.
fn format_value(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

pub(super) fn print(suite: &str, machine: &Machine, rows: &[ReportRow]) {
    print_line(format_args!("{}", render(suite, machine, rows)));
}

/// Prints the table and writes it below `docs/bench`.
pub(super) fn publish(
    root: &Path,
    suite: &str,
    machine: &Machine,
    rows: &[ReportRow],
) -> Result<PathBuf> {
    let text = render(suite, machine, rows);
    print_line(format_args!("{text}"));
    let dir = root.join("docs/bench");
    fs::create_dir_all(&dir)?;
    let path = dir.join(format!("{suite}-{}.md", machine.date));
    fs::write(&path, text)?;
    Ok(path)
}

fn render(suite: &str, machine: &Machine, rows: &[ReportRow]) -> String {
    let mut text = format!("# Measurements: {suite}, {}\n\n{machine}\n", machine.date);
    text.push_str("| what | seen | floor | ratio | promise | kept |\n|---|---|---|---|---|---|\n");
    for row in rows {
        let ratio = if row.floor.is_empty() {
            String::new()
        } else {
            format!("{:.2}", row.figure)
        };
        let verdict = if row.holds { "yes" } else { "**no**" };
        let (what, value, floor, promise) = (&row.what, &row.value, &row.floor, row.promise);
        // Writing to a string does not fail.
        let _written = writeln!(
            text,
            "| {what} | {value} | {floor} | {ratio} | {promise} | {verdict} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_at_its_limit() {
        let at =
            |value| ReportRow::ratio("x", value, 2.0, "ms", Promise::at_most(1.5, "≤ 1.5×")).holds;
        assert!(at(2.9) && at(3.0) && !at(3.1));
        let rate =
            |value| ReportRow::absolute("x", value, "/s", Promise::at_least(10.0, "≥ 10")).holds;
        assert!(rate(10.0) && !rate(9.9));
    }
}
