//! The types of the process routes, `/api/processes` and `/api/process/…`.

use ostler_model::Timestamp;
use serde::{Deserialize, Serialize};

/// One process: its id under the name `pid`, and its other data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessBody {
    /// The short id.
    pub pid: String,
    /// All other fields of the execution.
    #[serde(flatten)]
    pub info: super::ExecutionBody,
}

/// The response to `GET /api/process/{id}/output`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessOutputBody {
    /// Lines of standard output; empty unless requested.
    pub stdout: Vec<OutputEntry>,
    /// Lines of standard error; empty unless requested.
    pub stderr: Vec<OutputEntry>,
    /// How many bytes of its output were lost, to a full disk or damaged files, so that lines are
    /// missing.
    #[serde(default, skip_serializing_if = "super::page::is_zero")]
    pub lost_bytes: u64,
    /// The offset from which on the files are damaged, so that later lines cannot be read; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged_from: Option<u64>,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputEntry {
    /// When its first byte was read.
    pub timestamp: Timestamp,
    /// The decoded line, without its end.
    pub text: String,
}

/// The response to `POST /api/process/{id}/clean`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanResponse {
    /// The id as given in the request.
    pub pid: String,
    /// Always `success`.
    pub result: String,
    /// Whether it had changes in the overlay of its workspace that were neither committed nor
    /// discarded: they were discarded with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded_changes: bool,
}

/// The response to `POST /api/process/clean_all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanAllResponse {
    /// How many were cleaned.
    pub count: u64,
    /// Those that could not be, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<CleanFailure>,
    /// Those of the cleaned ones that had changes in the overlay of their workspace that were neither
    /// committed nor discarded: they were discarded with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded_changes: Vec<PidEntry>,
}

/// The request of `POST /api/process/clean_selected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanSelected {
    /// The ids, at least one.
    pub pids: Vec<String>,
}

/// The response of `POST /api/process/clean_selected`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CleanSelectedResponse {
    /// Those that were removed.
    pub success: Vec<PidEntry>,
    /// Those that could not be removed.
    pub failed: Vec<CleanFailure>,
    /// Those that still run, and were not touched.
    pub running: Vec<PidEntry>,
    /// Those that are unknown or foreign.
    pub not_found: Vec<PidEntry>,
    /// Those of the removed ones that had changes in the overlay of their workspace that were neither
    /// committed nor discarded: they were discarded with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded_changes: Vec<PidEntry>,
}

/// The id of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidEntry {
    /// The id as it was given.
    pub pid: String,
}

/// A process that could not be cleaned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanFailure {
    /// The id as it was given.
    pub pid: String,
    /// The reason.
    pub reason: String,
}
