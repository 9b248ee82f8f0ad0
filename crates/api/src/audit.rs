//! The audit log.

use std::collections::BTreeMap;

use ostler_model::{Event, ExecutionId, Owner, Timestamp};
use serde::{Deserialize, Serialize};

/// One entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntryBody {
    /// Its number, from 0.
    pub seq: u64,
    /// Its hash in lowercase hexadecimal; it covers the hash of the entry before it.
    pub hash: String,
    /// When it was made.
    pub at: Timestamp,
    /// The full id of the execution; absent for a request that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// On whose behalf it happened.
    pub by: Owner,
    /// `event`, the event's name, and its fields.
    #[serde(flatten)]
    pub event: Event,
    /// The command line, the isolation, the interface; with an end, what the execution used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detail: BTreeMap<String, serde_json::Value>,
}

/// Entries that the caller sees, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditPageBody {
    /// The entries of this page; there may be none although there is more.
    pub entries: Vec<AuditEntryBody>,
    /// The `from` to continue with.
    pub next: u64,
    /// Whether there is more already.
    pub more: bool,
}
