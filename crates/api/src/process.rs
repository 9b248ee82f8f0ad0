//! The shapes of A10, document 000's web interface.

use ostler_model::Timestamp;
use serde::{Deserialize, Serialize};

/// One process: its id as document 000 calls it, and everything else known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessBody {
    /// The short id.
    pub pid: String,
    /// The rest.
    #[serde(flatten)]
    pub info: super::ExecutionBody,
}

/// `GET /api/process/{id}/output`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessOutputBody {
    /// Lines of standard output; empty unless asked for.
    pub stdout: Vec<OutputEntry>,
    /// Lines of standard error; empty unless asked for.
    pub stderr: Vec<OutputEntry>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputEntry {
    /// When its first byte came.
    pub timestamp: Timestamp,
    /// The decoded line, without its end.
    pub text: String,
}

/// `POST /api/process/{id}/clean`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanResponse {
    /// The id as it was given.
    pub pid: String,
    /// `success`.
    pub result: String,
}

/// `POST /api/process/clean_all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanAllResponse {
    /// How many were cleaned.
    pub count: u64,
    /// Those that could not be, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<CleanFailure>,
}

/// The request of `POST /api/process/clean_selected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanSelected {
    /// The ids, at least one.
    pub pids: Vec<String>,
}

/// The answer of `POST /api/process/clean_selected`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CleanSelectedResponse {
    /// Those that are gone.
    pub success: Vec<PidEntry>,
    /// Those that could not be removed.
    pub failed: Vec<CleanFailure>,
    /// Those that run, and were left alone.
    pub running: Vec<PidEntry>,
    /// Those that are unknown or somebody else's.
    pub not_found: Vec<PidEntry>,
}

/// One id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidEntry {
    /// The id as it was given.
    pub pid: String,
}

/// One id that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanFailure {
    /// The id as it was given.
    pub pid: String,
    /// Why.
    pub reason: String,
}
