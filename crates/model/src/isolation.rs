//! Isolation levels and resource limits: what was requested, what is in force, what is missing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::capability::{Capability, LimitBackend, MissingCapability};
use crate::sandbox_spec::SandboxSpec;

/// The isolation level of a command.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum IsolationLevel {
    /// Clean environment, own process group, whole-tree kill.
    Basic,
    /// Also a cgroup of its own with limits, or rlimits where there is none.
    #[default]
    Medium,
    /// Also namespaces, Landlock and seccomp.
    High,
    /// A container.
    Container,
}

impl IsolationLevel {
    /// Every level, from the weakest.
    pub const ALL: [Self; 4] = [Self::Basic, Self::Medium, Self::High, Self::Container];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Container => "container",
        }
    }
}

/// The error for a word that is not an isolation level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no isolation level: basic, medium, high or container")]
pub struct IsolationLevelError(String);

impl FromStr for IsolationLevel {
    type Err = IsolationLevelError;

    fn from_str(text: &str) -> Result<Self, IsolationLevelError> {
        let level = Self::ALL.into_iter().find(|level| level.as_str() == text);
        level.ok_or_else(|| IsolationLevelError(text.to_owned()))
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Resource limits of one execution's process tree; none means that the engine sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// The most processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// The most memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processor time in thousandths of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// The most open files of each process (`RLIMIT_NOFILE`, lowered only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u32>,
    /// The size in bytes of the largest file it may write (`RLIMIT_FSIZE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// The bytes by which its workspace may grow, enforced by accounting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

impl Limits {
    /// Fills limits that are not set from `other`.
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

/// The most processes and threads of an execution at level medium that requests no other limit.
pub const DEFAULT_PIDS: u32 = 4096;

/// Names of the resource limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Processes and threads.
    Pids,
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
    /// Open files.
    OpenFiles,
    /// File size.
    FileSize,
    /// Growth of the workspace.
    Disk,
}

/// The requested isolation, resolved against what the backend can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationSpec {
    /// The requested level.
    pub level: IsolationLevel,
    /// The sandbox of level high; none at lower levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<SandboxSpec>,
    /// The limits to apply.
    pub limits: Limits,
    /// How limits are enforced on this host.
    pub backend: LimitBackend,
    /// The capabilities that are in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<Capability>,
    /// The requested capabilities that are missing; [`IsolationSpec::warnings`] selects those that
    /// a response reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingCapability>,
}

impl IsolationSpec {
    /// The missing capabilities that responses report: all of them at level high, and those that
    /// the command itself requested. What no command gets on this host (a cgroup of its own, and
    /// the limit on processes that needs it) is reported only for the `first` command that lacks
    /// it.
    #[must_use]
    pub fn warnings(&self, first: bool) -> Vec<MissingCapability> {
        let missing = self.missing.iter();
        let reported = missing.filter(|it| first || !self.is_host_wide(it.ability));
        reported.cloned().collect()
    }

    /// Whether a capability is missing that no command gets on this host.
    #[must_use]
    pub fn lacks_host_wide(&self) -> bool {
        self.missing.iter().any(|it| self.is_host_wide(it.ability))
    }

    fn is_host_wide(&self, ability: Capability) -> bool {
        let is_default_pids =
            ability == Capability::PidsLimit && self.limits.pids == Some(DEFAULT_PIDS);
        self.level < IsolationLevel::High && (ability == Capability::OwnCgroup || is_default_pids)
    }
}
