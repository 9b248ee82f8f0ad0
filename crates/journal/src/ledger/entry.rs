//! What a ledger entry says.

use std::collections::BTreeMap;

use ostler_model::{Event, ExecutionId, Owner, Timestamp};
use serde::{Deserialize, Serialize};

/// One thing that happened, refused requests included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// When.
    pub at: Timestamp,
    /// To which execution; none for requests that never became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// On whose behalf.
    pub by: Owner,
    /// What.
    pub event: Event,
    /// What people want to see beside it: the command line, the level asked, the face.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detail: BTreeMap<String, serde_json::Value>,
}

/// A position in the ledger: entries before it. Not an execution's cursor.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LedgerCursor(pub u64);

/// An entry in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRecord {
    /// Its number, from 0.
    pub seq: u64,
    /// What it says.
    pub entry: LedgerEntry,
    /// Its hash in lowercase hexadecimal; covers the hash before it.
    pub hash: String,
}
