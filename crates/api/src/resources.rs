//! What a running tree uses.

use ostler_model::Usage;
use ostler_model::isolation::{LimitKind, Limits};
use ostler_model::snapshot::TreeMember;
use serde::{Deserialize, Serialize};

/// `GET …/resources`: one look at the tree. What has ended has no members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourcesBody {
    /// Seconds of processor time that its living processes used.
    pub cpu_seconds: f64,
    /// Bytes they hold resident; shared pages count for each.
    pub memory_bytes: u64,
    /// Bytes its workspace has grown by; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Its living processes, the leader first.
    pub processes: Vec<TreeMemberBody>,
    /// What its ended processes used, and the largest resident set of one.
    pub usage: Usage,
    /// Its limits.
    pub limits: Limits,
    /// Limits that were reached.
    pub limits_hit: Vec<LimitKind>,
}

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMemberBody {
    /// Its OS pid.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its name, at most 15 bytes of it.
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
