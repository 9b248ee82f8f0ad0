//! Events of executions, as followers receive them.

use std::collections::BTreeMap;

use ostler_model::{Event, ExecutionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::audit::DamagedEntriesBody;

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventBody {
    /// The position after it.
    pub cursor: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The short id of its execution; absent for a start that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The full id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<ExecutionId>,
    /// The session it belonged to then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `event`, the event's name, and its fields.
    #[serde(flatten)]
    pub event: Event,
    /// With a start: the requested command line, directory and isolation level. With an interaction:
    /// `kind` and `message` of the question, or the `answer`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request: BTreeMap<String, serde_json::Value>,
    /// With an end: `user_us` and `system_us` of processor time in microseconds, `max_rss_bytes`,
    /// `output_bytes`, and the numbers of `attempts` and of detected `prompts`; where they are known,
    /// `output_lines`, the largest samples (`peak_cpu_percent` of one core, `peak_memory_bytes`,
    /// `peak_disk_bytes`, `peak_processes`), and up to the last sample `read_bytes`,
    /// `written_bytes`, `received_bytes` and `sent_bytes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, serde_json::Value>,
}

/// Events, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsBody {
    /// The events of this page.
    pub events: Vec<EventBody>,
    /// Entries of the audit log, of any caller, whose events cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedEntriesBody>,
    /// The `cursor` to continue from. A position in the whole log, which numbers the entries of all callers: it
    /// tells that others made some, and has to, because what was read stays numbered when more comes,
    /// also under the next daemon.
    pub next: u64,
    /// Whether there is more already.
    pub behind: bool,
}
