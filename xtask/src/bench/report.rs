//! The table.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::machine::Machine;
use crate::ui::say;

/// One row of the table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What was measured.
    pub(super) what: String,
    /// What was seen, with its unit.
    pub(super) value: String,
    /// The floor of the same run, with its unit; empty where the promise is absolute.
    pub(super) floor: String,
    /// Seen over floor, or the figure the promise is about.
    pub(super) figure: f64,
    /// The promise as specification 03 words it.
    pub(super) promise: &'static str,
    /// Whether the promise was kept.
    pub(super) met: bool,
}

/// Which side of a limit keeps a promise.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// The figure must not be larger.
    AtMost(f64),
    /// The figure must not be smaller.
    AtLeast(f64),
}

impl Limit {
    fn keeps(self, figure: f64) -> bool {
        match self {
            Self::AtMost(limit) => figure <= limit,
            Self::AtLeast(limit) => figure >= limit,
        }
    }
}

impl Row {
    /// A figure against its floor; `unit` stands behind both.
    pub(super) fn ratio(
        what: &str,
        (value, floor): (f64, f64),
        unit: &str,
        (limit, promise): (Limit, &'static str),
    ) -> Self {
        let figure = value / floor;
        Self {
            what: what.to_owned(),
            value: format!("{} {unit}", short(value)),
            floor: format!("{} {unit}", short(floor)),
            figure,
            promise,
            met: limit.keeps(figure),
        }
    }

    /// A figure against an absolute limit.
    pub(super) fn absolute(
        what: &str,
        value: f64,
        unit: &str,
        (limit, promise): (Limit, &'static str),
    ) -> Self {
        Self {
            what: what.to_owned(),
            value: format!("{} {unit}", short(value)),
            floor: String::new(),
            figure: value,
            promise,
            met: limit.keeps(value),
        }
    }
}

/// Three significant digits are all a noisy machine can tell.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Says the table.
pub(super) fn tell(suite: &str, machine: &Machine, rows: &[Row]) {
    say(format_args!("{}", render(suite, machine, rows)));
}

/// Says the table and writes it below `docs/bench`.
pub(super) fn publish(
    root: &Path,
    suite: &str,
    machine: &Machine,
    rows: &[Row],
) -> Result<PathBuf> {
    let text = render(suite, machine, rows);
    say(format_args!("{text}"));
    let dir = root.join("docs/bench");
    fs::create_dir_all(&dir)?;
    let path = dir.join(format!("{suite}-{}.md", machine.date));
    fs::write(&path, text)?;
    Ok(path)
}

fn render(suite: &str, machine: &Machine, rows: &[Row]) -> String {
    let mut text = format!("# Measurements: {suite}, {}\n\n{machine}\n", machine.date);
    text.push_str("| what | seen | floor | ratio | promise | kept |\n|---|---|---|---|---|---|\n");
    for row in rows {
        let ratio = if row.floor.is_empty() {
            String::new()
        } else {
            format!("{:.2}", row.figure)
        };
        let kept = if row.met { "yes" } else { "**no**" };
        let (what, value, floor, promise) = (&row.what, &row.value, &row.floor, row.promise);
        // Writing to a string does not fail.
        let _written = writeln!(
            text,
            "| {what} | {value} | {floor} | {ratio} | {promise} | {kept} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_at_its_limit() {
        let at = |value| Row::ratio("x", (value, 2.0), "ms", (Limit::AtMost(1.5), "≤ 1.5×")).met;
        assert!(at(2.9) && at(3.0) && !at(3.1));
        let rate = |value| Row::absolute("x", value, "/s", (Limit::AtLeast(10.0), "≥ 10")).met;
        assert!(rate(10.0) && !rate(9.9));
    }
}
