//! The record of an attempt that is over: what a backend writes before it reports the end.

use serde::{Deserialize, Serialize};

use crate::termination::WaitStatus;
use crate::{AutorunReport, LimitKind, MissingCapability, TimeoutKind, Timestamp, Usage};

/// The version byte of [`ExitRecord`].
pub const EXIT_RECORD_VERSION: u8 = 1;

/// The step of [`LeaderOutcome::SpawnFailed`] before all others: the execution's directory and spec.
pub const STEP_STORAGE: &str = "storage";
/// The step of [`LeaderOutcome::SpawnFailed`] for which the daemon has no descriptor left: nothing
/// was tried.
pub const STEP_OPEN_FILES: &str = "open_files";
/// The step of [`LeaderOutcome::SpawnFailed`] at which no terminal could be had; with `EAGAIN`, as
/// posix_openpt(3) has it, the kernel's limit on them (`kernel.pty.max`) is reached.
pub const STEP_TERMINAL: &str = "terminal";

/// How an attempt ended. Written whole or not at all, before the end is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The format's version, now [`EXIT_RECORD_VERSION`].
    pub version: u8,
    /// The attempt's number.
    pub attempt: u32,
    /// The leader's OS pid; 0 where it never ran.
    pub pid: u32,
    /// When the program started, or the attempt to spawn it began.
    pub started_at: Timestamp,
    /// When the leader ended; where processes that it left continued in its place, the end of the
    /// last of them.
    pub ended_at: Timestamp,
    /// Milliseconds from start to end on the monotonic clock: steps of the wall clock do not
    /// matter. Records of earlier versions have 0.
    #[serde(default)]
    pub lived_ms: u64,
    /// The outcome of the leader.
    pub outcome: LeaderOutcome,
    /// The number of processes that it left and that were ended.
    pub leftovers: u32,
    /// OS pids that survived the whole kill escalation; where there are any, that is an error to
    /// report.
    pub survivors: Vec<u32>,
    /// Whether a limit on memory killed it.
    pub out_of_memory: bool,
    /// Limits the tree ran into.
    #[serde(default)]
    pub limits_hit: Vec<LimitKind>,
    /// Resources the tree used.
    pub usage: Usage,
    /// The journal's end.
    pub output_end: u64,
    /// Why output could not be written, where it could not.
    pub journal_error: Option<String>,
    /// Output bytes lost to a full disk.
    pub lost_bytes: u64,
    /// Files it left in its workspace that other programs run or obey by themselves.
    #[serde(default)]
    pub autorun: Box<AutorunReport>,
    /// Enforced capabilities that were lost while it ran. Only in files: in a message,
    /// [`ProcessEvent::Degraded`](crate::ProcessEvent::Degraded) comes before the record, whose form
    /// there is that of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "in_files")]
    pub lost_capabilities: Vec<MissingCapability>,
}

/// Takes no byte in a format without field names (postcard).
mod in_files {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::MissingCapability;

    pub(super) fn serialize<S: Serializer>(
        lost: &[MissingCapability],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            lost.serialize(to)
        } else {
            to.serialize_unit()
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<MissingCapability>, D::Error> {
        if from.is_human_readable() {
            Vec::deserialize(from)
        } else {
            Ok(Vec::new())
        }
    }
}

/// The outcome of a leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaderOutcome {
    /// It ran and ended.
    Ended {
        /// As waitid(2) reported it.
        status: WaitStatus,
        /// The reason for the kill escalation, if it had begun.
        #[serde(rename = "ladder")]
        kill_reason: Option<KillReason>,
    },
    /// It never ran.
    #[serde(rename = "not_born")]
    SpawnFailed {
        /// The step that failed, for example `exec`; [`STEP_STORAGE`] where the state
        /// directory could not be written and nothing was tried.
        step: String,
        /// The kernel's error number.
        errno: Option<i32>,
        /// The message, for people.
        message: String,
    },
    /// It ran in a container that ended before its own end was seen: every process was killed.
    ContainerLost,
}

/// Why the kill escalation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillReason {
    /// By a [`ControlCommand::Stop`](crate::ControlCommand::Stop).
    #[serde(rename = "ordered")]
    Requested,
    /// A timeout of the launch plan.
    #[serde(rename = "clock")]
    Timeout(TimeoutKind),
}
