//! Resource usage of a running tree.

use ostler_model::Usage;
use ostler_model::isolation::{LimitKind, Limits};
use ostler_model::snapshot::TreeMember;
use serde::{Deserialize, Serialize};

/// `GET …/resources`: a snapshot of the tree. An ended execution has no members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourcesBody {
    /// Seconds of processor time used by its running processes.
    pub cpu_seconds: f64,
    /// Resident memory in bytes; shared pages count for each process.
    pub memory_bytes: u64,
    /// Bytes by which its workspace has grown; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Its running processes, the leader first.
    pub processes: Vec<TreeMemberBody>,
    /// Resource usage of its ended processes, and the largest resident set of one.
    pub usage: Usage,
    /// The limits of the tree.
    pub limits: Limits,
    /// Limits that were reached.
    pub limits_hit: Vec<LimitKind>,
}

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMemberBody {
    /// Its OS pid.
    pub pid: u32,
    /// The parent's OS pid.
    pub parent: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
}

impl From<TreeMember> for TreeMemberBody {
    fn from(member: TreeMember) -> Self {
        Self {
            pid: member.pid,
            parent: member.parent,
            name: member.name,
        }
    }
}
