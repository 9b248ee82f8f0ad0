//! Everything that was found out, for people and programs.

use serde::Serialize;

use super::checks::Check;
use super::levels::Level;
use super::witness::Witnessed;
use crate::error::CommandError;
use crate::output::{Out, Style, Table, cells};

/// What D8 says of sessions.
const SESSIONS: &str = "Session isolation is between clients; only levels high and container \
                        wall commands off from each other and from us.";

/// What no kernel that we know bounds for a cell, whoever runs it.
const OPEN_TO_ALL: [&str; 2] = [
    "unix sockets by path: two commands that share a workspace can connect through it and pass \
     descriptors",
    "between two looks at a workspace (0.1 to 2 s) a command can write more than its disk limit",
];
/// And what is counted for the ids a cell runs with: for root these are a cell's own.
const OPEN_TO_ONESELF: [&str; 3] = [
    "descriptors in flight over unix sockets count for your user on the whole machine",
    "pages of pipes count for your user on the whole machine",
    "watches of epoll count for your user on the whole machine",
];

/// Where level high stands among the levels.
const HIGH: usize = 2;

/// Everything that was found out.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// As which user.
    pub(super) uid: u32,
    pub(super) levels: Vec<Level>,
    /// Attempts of a command at level high.
    pub(super) witnessed: Vec<Witnessed>,
    /// Why there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    pub(super) checks: Vec<Check>,
}

impl Report {
    /// Whether level high is whole here: nothing is missing, and every attempt came as it must.
    pub(crate) fn is_whole(&self) -> bool {
        let high = |level: &&Level| level.level == ostler_model::IsolationLevel::High;
        let high = self.levels.iter().find(high);
        let held = !self.witnessed.is_empty() && self.witnessed.iter().all(|it| it.held);
        high.is_some_and(|level| level.whole) && held
    }

    /// What level high does not wall off on this kernel.
    fn open(&self) -> Vec<&'static str> {
        let shared = OPEN_TO_ONESELF.iter().filter(|_| self.uid != 0);
        OPEN_TO_ALL.iter().chain(shared).copied().collect()
    }

    /// The report with its sums, as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let mut value = serde_json::json!(self);
        let denials: Vec<_> = self.witnessed.iter().filter(|it| it.to_deny).collect();
        let told = denials
            .iter()
            .map(|it| serde_json::json!({"what": it.what, "denied": it.held, "detail": it.said}));
        value["levels"][HIGH]["denials"] = told.collect();
        value["high_is_whole"] = self.is_whole().into();
        value["note"] = SESSIONS.into();
        value["levels"][HIGH]["open"] = self.open().into();
        value
    }

    /// The tables.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(crate) fn print(&self, out: &mut Out, style: Style) -> Result<(), CommandError> {
        self.levels(out)?;
        self.missing(out)?;
        self.attempts(out, style)?;
        out.line("")?;
        let mut table = Table::new(&["CHECK", "", ""]);
        for check in &self.checks {
            let mark = if check.ok { "ok" } else { "PROBLEM" };
            table.row(cells![check.what, mark, &check.said]);
        }
        table.print(out)?;
        out.line("")?;
        out.line("Not walled off at level high by this kernel:")?;
        for open in self.open() {
            out.line(format!("  {open}"))?;
        }
        out.line("")?;
        out.line(SESSIONS)
    }

    fn levels(&self, out: &mut Out) -> Result<(), CommandError> {
        let mut table = Table::new(&["LEVEL", "", "IN FORCE"]);
        for level in &self.levels {
            let stands = match (level.built, level.whole) {
                (false, _) => "not built yet",
                (true, true) => "whole",
                (true, false) => "NOT WHOLE",
            };
            let names: Vec<&str> = level.in_force.iter().map(|it| it.as_str()).collect();
            table.row(cells![level.level.to_string(), stands, names.join(" ")]);
        }
        table.print(out)
    }

    /// Each missing piece once, under the lowest level that wants it.
    fn missing(&self, out: &mut Out) -> Result<(), CommandError> {
        let mut told = Vec::new();
        let mut helped = None;
        for level in &self.levels {
            for missing in &level.missing {
                if told.contains(&missing.ability) {
                    continue;
                }
                told.push(missing.ability);
                out.line("")?;
                out.line(format!(
                    "{} lacks {}: {}",
                    level.level,
                    missing.ability.as_str(),
                    missing.reason
                ))?;
                match missing.remedy {
                    Some(remedy) if helped == Some(remedy) => out.line("  what helps: the same")?,
                    Some(remedy) => out.line(format!("  what helps: {remedy}"))?,
                    None => {}
                }
                helped = missing.remedy;
            }
        }
        Ok(())
    }

    fn attempts(&self, out: &mut Out, style: Style) -> Result<(), CommandError> {
        out.line("")?;
        if let Some(problem) = &self.problem {
            return out.line(format!("Nothing was witnessed at level high: {problem}"));
        }
        let held = self.witnessed.iter().filter(|it| it.held).count();
        out.line(format!(
            "Witnessed at level high, as user {}: {held} of {} as they must be",
            self.uid,
            self.witnessed.len()
        ))?;
        let mut table = Table::new(&["ATTEMPT", "", ""]);
        for told in &self.witnessed {
            let stands = match (told.to_deny, told.held) {
                (true, true) => style.dim("denied"),
                (true, false) => "NOT DENIED".into(),
                (false, true) => style.dim("works"),
                (false, false) => "DOES NOT WORK".into(),
            };
            table.row(cells![&told.what, stands, &told.said]);
        }
        table.print(out)
    }
}
