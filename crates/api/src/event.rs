//! What happened, for followers.

use std::collections::BTreeMap;

use ostler_model::{Event, ExecutionId, Timestamp};
use serde::{Deserialize, Serialize};

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
    /// The whole id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<ExecutionId>,
    /// The session it belonged to then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `event`, its name, and what belongs to it.
    #[serde(flatten)]
    pub event: Event,
    /// What was asked, with a start: its command line, directory and level.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request: BTreeMap<String, serde_json::Value>,
}

/// Events, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsBody {
    /// The events.
    pub events: Vec<EventBody>,
    /// The `cursor` to go on with.
    pub next: u64,
    /// Whether there is more already.
    pub behind: bool,
}
