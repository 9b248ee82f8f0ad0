//! What a command with an allow list tried to reach.

use ostler_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Decisions of an execution's gate, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressPageBody {
    /// The decisions of this page.
    pub decisions: Vec<EgressDecisionBody>,
    /// Where the next page begins: a number of bytes into the log.
    pub next: u64,
    /// Whether there is more already.
    pub more: bool,
}

/// One decision: a name that was asked for, or a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDecisionBody {
    /// When.
    pub at: Timestamp,
    /// Which host, as the command named it.
    pub host: String,
    /// Which port; absent for a question about a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address it was reached at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What was decided, for example `allowed` or `refused`.
    pub decision: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
