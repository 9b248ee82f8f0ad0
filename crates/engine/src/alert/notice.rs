//! [`AlertNotice`]: an alert, as subscribers receive it.

use ostler_model::{AlertKind, AlertState, ExecutionId, Owner, Timestamp};

/// An alert that was raised or resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertNotice {
    /// When.
    pub at: Timestamp,
    /// The execution.
    pub execution: ExecutionId,
    /// Its owner.
    pub owner: Owner,
    /// Its command line, redacted.
    pub command: String,
    /// What it is about.
    pub kind: AlertKind,
    /// Whether it was raised or resolved.
    pub state: AlertState,
    /// The value, in the unit of the kind.
    pub value: u64,
    /// The threshold, in that unit.
    pub threshold: u64,
}
