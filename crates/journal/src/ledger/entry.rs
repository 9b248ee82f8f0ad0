//! Ledger entries.

use std::collections::BTreeMap;
use std::ops::Range;

use ostler_model::{Event, ExecutionId, Owner, Timestamp};
use serde::{Deserialize, Serialize};

/// One lifecycle or audit entry; refused requests are recorded too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// When it happened.
    pub at: Timestamp,
    /// The execution; none for requests that were never admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// The caller on whose behalf it happened.
    pub by: Owner,
    /// The event.
    pub event: Event,
    /// Details for people: the command line, the requested isolation level, the interface.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detail: BTreeMap<String, serde_json::Value>,
}

/// A position in the ledger: the number of entries before it. Not an execution's cursor.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LedgerCursor(pub u64);

/// An entry with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRecord {
    /// The number of the entry, from 0.
    pub seq: u64,
    /// The entry itself.
    pub entry: LedgerEntry,
    /// The hash in lowercase hexadecimal; it covers the previous hash.
    pub hash: String,
}

/// What one read returned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerPage {
    /// The entries, oldest first.
    pub records: Vec<LedgerRecord>,
    /// Where to continue: after the last entry, or where the read began.
    pub next: LedgerCursor,
    /// The numbers of entries before `next` that do not fit the chain, or whose lines are damaged.
    pub damaged: Vec<Range<u64>>,
}
