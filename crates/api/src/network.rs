//! Network decisions about a command with an allow list.

use ostler_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Decisions of an execution's egress proxy, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressPageBody {
    /// The decisions of this page.
    pub decisions: Vec<EgressDecisionBody>,
    /// The start of the next page: a byte offset in the log.
    pub next: u64,
    /// Whether more is available already.
    pub more: bool,
}

/// One decision: about a name lookup or a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDecisionBody {
    /// When it was made.
    pub at: Timestamp,
    /// The host, as the command named it.
    pub host: String,
    /// The port; absent for a name lookup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The decision, for example `allowed` or `refused`.
    pub decision: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
