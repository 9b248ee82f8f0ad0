//! The execution that a report is about.

use ostler_model::{ExecutionId, Termination, Timestamp};

/// The execution in whose output a report was found.
#[derive(Debug, Clone)]
pub struct ReportSubject<'a> {
    /// Its id.
    pub id: ExecutionId,
    /// Its command in one line, as it was recorded.
    pub command: String,
    /// Its absolute working directory; empty where it is not known.
    pub cwd: String,
    /// When its first attempt was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended; none while it runs.
    pub ending: Option<&'a Termination>,
    /// Bytes of its output that are gone and were not searched.
    pub missing_bytes: u64,
}
