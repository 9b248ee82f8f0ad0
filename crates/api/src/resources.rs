//! Resource usage of a running tree.

use ostler_model::isolation::{LimitKind, Limits};
use ostler_model::snapshot::TreeMember;
use ostler_model::{ExecutionId, Timestamp, Usage, UsageSample};
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
    /// Processor time since the last sample, in percent of one core; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f32>,
    /// Bytes read from storage since the start, as the following ones; absent where they cannot be
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes received; absent without a network namespace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Bytes sent; absent without a network namespace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Why the bytes received and sent are not known, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_unknown: Option<String>,
    /// Its running processes, the leader first.
    pub processes: Vec<TreeMemberBody>,
    /// Resource usage of its ended processes, and the largest resident set of one.
    pub usage: Usage,
    /// The limits of the tree.
    pub limits: Limits,
    /// Limits that were reached.
    pub limits_hit: Vec<LimitKind>,
}

/// `GET …/resources/history`: what an execution used over time. Samples are kept in memory: those of
/// an earlier daemon are not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageHistoryBody {
    /// The length of the interval that a point stands for, in seconds: 1, 10 or 300.
    pub resolution_s: u64,
    /// The points, oldest first. The last one is of an interval that may not be over: it is listed
    /// again, with a later time, when there is more of it.
    pub points: Vec<UsagePointBody>,
    /// The `since` of the next page: the time of the last point; absent without points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Whether there are more points already.
    pub more: bool,
}

/// What an execution used in one interval. What cannot be measured is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsagePointBody {
    /// The time of its last sample.
    pub at: Timestamp,
    /// Processor time in percent of one core, on average; absent for the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f32>,
    /// The most resident memory, in bytes.
    pub memory_bytes: u64,
    /// Bytes by which its workspace had grown; absent without a limit on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Bytes read from storage since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes received since the start; absent without a network namespace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Bytes sent since the start; absent without a network namespace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// The most living processes.
    pub processes: u32,
}

impl From<UsageSample> for UsagePointBody {
    fn from(sample: UsageSample) -> Self {
        Self {
            at: sample.at,
            cpu_percent: sample.cpu_percent,
            memory_bytes: sample.memory_bytes,
            disk_bytes: sample.disk_bytes,
            read_bytes: sample.read_bytes,
            written_bytes: sample.written_bytes,
            received_bytes: sample.received_bytes,
            sent_bytes: sample.sent_bytes,
            processes: sample.processes,
        }
    }
}

/// `GET /api/v1/resources`: what all living executions of the caller use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceListBody {
    /// The executions, newest first.
    pub executions: Vec<ExecutionUsageBody>,
    /// Whether there are more than the limit.
    pub more: bool,
}

/// What one living execution uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionUsageBody {
    /// Its short id.
    pub id: String,
    /// Its full id.
    pub uuid: ExecutionId,
    /// Its command line, redacted.
    pub command: String,
    /// Its name, where it is a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Whether it is frozen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// When it was started; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The newest sample; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsagePointBody>,
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
