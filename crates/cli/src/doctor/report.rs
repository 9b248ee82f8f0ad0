//! The report of all results, for people and programs.

use std::collections::HashSet;

use ostler_api::{DoctorBody, DoctorCheckBody, DoctorGroup};
use ostler_render::isolation::SESSION_NOTE;
use serde::Serialize;

use super::checks::DoctorCheck;
use super::level_reports::{CapabilityGap, LevelReport};
use super::sandbox_probe::ProbeResult;
use crate::error::CommandError;
use crate::output::{StdoutWriter, Style, TextTable, cells};

/// What no known kernel limits for a jail, whichever user runs it.
const SHARED_GAPS: [&str; 2] = [
    "unix sockets by path: two commands that share a workspace can connect through it and pass \
     descriptors",
    "between two looks at a workspace (0.1 to 2 s) a command can write more than its disk limit",
];
/// Paths counted for the ids that a jail runs with: for root these are the jail's own.
const SAME_USER_GAPS: [&str; 3] = [
    "descriptors in flight over unix sockets count for your user on the whole machine",
    "pages of pipes count for your user on the whole machine",
    "watches of epoll count for your user on the whole machine",
];

/// The index of level high among the levels.
const HIGH_INDEX: usize = 2;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct DoctorReport {
    /// The user id of the tests.
    pub(super) uid: u32,
    pub(super) levels: Vec<LevelReport>,
    /// The results of the sandbox probe.
    #[serde(rename = "witnessed")]
    pub(super) probes: Vec<ProbeResult>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    pub(super) checks: Vec<DoctorCheck>,
}

impl DoctorReport {
    /// Whether level high is complete here: nothing is missing, and every probe passed.
    pub(crate) fn is_whole(&self) -> bool {
        let high = |level: &&LevelReport| level.level == ostler_model::IsolationLevel::High;
        let high = self.levels.iter().find(high);
        let probes_passed = !self.probes.is_empty() && self.probes.iter().all(|it| it.passed);
        high.is_some_and(|level| level.whole) && probes_passed
    }

    /// What level high does not isolate on this kernel.
    fn known_gaps(&self) -> Vec<&'static str> {
        let shared = SAME_USER_GAPS.iter().filter(|_| self.uid != 0);
        SHARED_GAPS.iter().chain(shared).copied().collect()
    }

    /// The report with its totals, as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let mut value = serde_json::json!(self);
        let denials: Vec<_> = self.probes.iter().filter(|it| it.to_deny).collect();
        let denials = denials.iter().map(
            |it| serde_json::json!({"what": it.what, "denied": it.passed, "detail": it.detail}),
        );
        value["levels"][HIGH_INDEX]["denials"] = denials.collect();
        value["high_is_whole"] = self.is_whole().into();
        value["note"] = SESSION_NOTE.into();
        value["levels"][HIGH_INDEX]["open"] = self.known_gaps().into();
        value
    }

    /// The report as one list of checks, for clients of the daemon.
    pub(crate) fn body(&self) -> DoctorBody {
        let levels = self.levels.iter().map(level_check);
        let missing = self.levels.iter().flat_map(|level| &level.missing);
        let mut listed = HashSet::new();
        let missing = missing.filter(|gap| listed.insert(gap.ability));
        let problem = self.problem.iter().map(|problem| DoctorCheckBody {
            group: DoctorGroup::Denied,
            name: "the attempts of a sandboxed command".to_owned(),
            holds: false,
            detail: problem.clone(),
            remedy: None,
        });
        let probes = self.probes.iter().map(probe_check).chain(problem);
        let checks = levels
            .chain(missing.map(missing_check))
            .chain(probes)
            .chain(self.checks.iter().map(installation_check));
        DoctorBody {
            uid: self.uid,
            high_is_whole: self.is_whole(),
            checks: checks.collect(),
            known_gaps: self.known_gaps().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Prints the tables.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(crate) fn print(&self, out: &mut StdoutWriter, style: Style) -> Result<(), CommandError> {
        self.levels(out)?;
        self.missing(out)?;
        self.attempts(out, style)?;
        out.write_line("")?;
        let mut table = TextTable::new(&["CHECK", "", ""]);
        for check in &self.checks {
            let mark = if check.ok { "ok" } else { "PROBLEM" };
            table.push_row(cells![check.what, mark, &check.detail]);
        }
        table.print(out)?;
        out.write_line("")?;
        out.write_line("Not isolated at level high by this kernel:")?;
        for open in self.known_gaps() {
            out.write_line(format!("  {open}"))?;
        }
        out.write_line("")?;
        out.write_line(SESSION_NOTE)
    }

    fn levels(&self, out: &mut StdoutWriter) -> Result<(), CommandError> {
        let mut table = TextTable::new(&["LEVEL", "", "IN FORCE"]);
        for level in &self.levels {
            let stands = match (&level.problem, level.whole) {
                (Some(_), _) => "not here",
                (None, true) => "whole",
                (None, false) => "NOT WHOLE",
            };
            table.push_row(cells![level.level.to_string(), stands, in_force(level)]);
        }
        table.print(out)
    }

    /// Prints each missing capability once, under the lowest level that needs it.
    fn missing(&self, out: &mut StdoutWriter) -> Result<(), CommandError> {
        let mut listed = Vec::new();
        let mut helped = None;
        for level in &self.levels {
            for missing in &level.missing {
                if listed.contains(&missing.ability) {
                    continue;
                }
                listed.push(missing.ability);
                out.write_line("")?;
                out.write_line(format!(
                    "{} lacks {}: {}",
                    level.level,
                    missing.ability.as_str(),
                    missing.reason
                ))?;
                match missing.remedy {
                    Some(remedy) if helped == Some(remedy) => {
                        out.write_line("  what helps: the same")?;
                    }
                    Some(remedy) => out.write_line(format!("  what helps: {remedy}"))?,
                    None => {}
                }
                helped = missing.remedy;
            }
        }
        Ok(())
    }

    fn attempts(&self, out: &mut StdoutWriter, style: Style) -> Result<(), CommandError> {
        out.write_line("")?;
        if let Some(problem) = &self.problem {
            return out.write_line(format!("Nothing was witnessed at level high: {problem}"));
        }
        let passed = self.probes.iter().filter(|it| it.passed).count();
        out.write_line(format!(
            "Witnessed at level high, as user {}: {passed} of {} as they must be",
            self.uid,
            self.probes.len()
        ))?;
        let mut table = TextTable::new(&["ATTEMPT", "", ""]);
        for probe in &self.probes {
            let stands = match (probe.to_deny, probe.passed) {
                (true, true) => style.dim("denied"),
                (true, false) => "NOT DENIED".into(),
                (false, true) => style.dim("works"),
                (false, false) => "DOES NOT WORK".into(),
            };
            table.push_row(cells![&probe.what, stands, &probe.detail]);
        }
        table.print(out)
    }
}

/// What is in force at a level, or why nothing is.
fn in_force(level: &LevelReport) -> String {
    let names: Vec<&str> = level.in_force.iter().map(|it| it.as_str()).collect();
    level.problem.clone().unwrap_or_else(|| names.join(" "))
}

fn level_check(level: &LevelReport) -> DoctorCheckBody {
    DoctorCheckBody {
        group: DoctorGroup::Levels,
        name: level.level.to_string(),
        holds: level.whole,
        detail: in_force(level),
        remedy: None,
    }
}

fn missing_check(gap: &CapabilityGap) -> DoctorCheckBody {
    DoctorCheckBody {
        group: DoctorGroup::Missing,
        name: gap.ability.as_str().to_owned(),
        holds: false,
        detail: gap.reason.clone(),
        remedy: gap.remedy.map(str::to_owned),
    }
}

fn probe_check(probe: &ProbeResult) -> DoctorCheckBody {
    DoctorCheckBody {
        group: match probe.to_deny {
            true => DoctorGroup::Denied,
            false => DoctorGroup::Allowed,
        },
        name: probe.what.clone(),
        holds: probe.passed,
        detail: probe.detail.clone(),
        remedy: None,
    }
}

fn installation_check(check: &DoctorCheck) -> DoctorCheckBody {
    DoctorCheckBody {
        group: DoctorGroup::Installation,
        name: check.what.to_owned(),
        holds: check.ok,
        detail: check.detail.clone(),
        remedy: None,
    }
}
