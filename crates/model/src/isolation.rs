//! Isolation and limits: what was asked, what is in force, what is missing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sandbox_spec::SandboxSpec;
use crate::snapshot::{Capability, LimitBackend};

/// How far a command is walled off (D8).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum IsolationLevel {
    /// Clean environment, own process group, whole-tree kill.
    Basic,
    /// And its own cgroup with limits, or rlimits where there is none.
    #[default]
    Medium,
    /// And namespaces, Landlock and seccomp.
    High,
    /// In a container.
    Container,
}

/// A word that is no isolation level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no isolation level: basic, medium, high or container")]
pub struct IsolationLevelError(String);

impl FromStr for IsolationLevel {
    type Err = IsolationLevelError;

    fn from_str(text: &str) -> Result<Self, IsolationLevelError> {
        match text {
            "basic" => Ok(Self::Basic),
            "medium" => Ok(Self::Medium),
            "high" => Ok(Self::High),
            "container" => Ok(Self::Container),
            other => Err(IsolationLevelError(other.to_owned())),
        }
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic => "basic",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Container => "container",
        })
    }
}

/// Limits of one execution's tree; none means unlimited by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Bytes of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Thousandths of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Open files of each process (`RLIMIT_NOFILE`, lowered only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u32>,
    /// Bytes of the largest file it may write (`RLIMIT_FSIZE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Bytes by which its workspace may grow, by accounting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

impl Limits {
    /// These limits, and where one is none, the other's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            pids: self.pids.or(other.pids),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            cpu_millis: self.cpu_millis.or(other.cpu_millis),
            open_files: self.open_files.or(other.open_files),
            file_bytes: self.file_bytes.or(other.file_bytes),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
        }
    }
}

/// Processes and threads a medium execution may have unless it asks otherwise.
pub const DEFAULT_PIDS: u32 = 4096;

/// A limit by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Processes and threads.
    Pids,
    /// Memory.
    Memory,
    /// Processor time per time.
    Cpu,
    /// Open files.
    OpenFiles,
    /// File size.
    FileSize,
    /// Growth of the workspace.
    Disk,
}

/// Something asked for that this host or place cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCapability {
    /// What is missing.
    pub ability: Capability,
    /// Why, in words a person can act on.
    pub reason: String,
}

/// The level asked, resolved once against what the place can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationSpec {
    /// What was asked.
    pub level: IsolationLevel,
    /// The walls of level high; none at lower levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<SandboxSpec>,
    /// The limits to apply.
    pub limits: Limits,
    /// How limits are enforced here.
    pub backend: LimitBackend,
    /// What is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<Capability>,
    /// What is missing; [`IsolationSpec::warnings`] are told without being asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingCapability>,
}

impl IsolationSpec {
    /// What of the missing a command's answers point out: everything at level high and what the
    /// command itself asked for; what no command gets on this host (a cgroup of its own, and
    /// the number of processes that it would count) only to the `first` one that lacks it.
    #[must_use]
    pub fn warnings(&self, first: bool) -> Vec<MissingCapability> {
        let missing = self.missing.iter();
        let told = missing.filter(|it| first || !self.is_of_host(it.ability));
        told.cloned().collect()
    }

    /// Whether something is missing that no command gets on this host.
    #[must_use]
    pub fn lacks_of_host(&self) -> bool {
        self.missing.iter().any(|it| self.is_of_host(it.ability))
    }

    fn is_of_host(&self, ability: Capability) -> bool {
        let usual = ability == Capability::PidsLimit && self.limits.pids == Some(DEFAULT_PIDS);
        self.level < IsolationLevel::High && (ability == Capability::OwnCgroup || usual)
    }
}
