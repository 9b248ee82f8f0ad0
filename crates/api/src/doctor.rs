//! What the daemon's machine can enforce.

use serde::{Deserialize, Serialize};

/// The result of an examination: what was tried, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorBody {
    /// The user id of the daemon, which everything was tried as.
    pub uid: u32,
    /// Whether isolation level `high` is complete: nothing is missing, and every attempt of a sandboxed
    /// command was denied or worked as it must.
    pub high_is_whole: bool,
    /// Everything that was tried, in order.
    pub checks: Vec<DoctorCheckBody>,
    /// What no isolation level keeps apart on this kernel, a sentence each.
    pub known_gaps: Vec<String>,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorCheckBody {
    /// What it belongs to: `levels` of isolation, `missing` capabilities, attempts that must be
    /// `denied` or `allowed` in a sandbox, or `installation`.
    pub group: DoctorGroup,
    /// What was tried.
    pub name: String,
    /// Whether it is as it must be.
    pub holds: bool,
    /// How that was seen: the system's error, the capabilities in force, a path.
    pub detail: String,
    /// What to do about it, where something helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What a check belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorGroup {
    /// An isolation level, with what is in force.
    Levels,
    /// A capability that an isolation level lacks here.
    Missing,
    /// An attempt of a sandboxed command that must be denied.
    Denied,
    /// An attempt of a sandboxed command that must work.
    Allowed,
    /// Directories, control groups, secrets, the configuration.
    Installation,
}
