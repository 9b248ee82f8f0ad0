//! One row of the history.

use ostler_model::{ExecutionId, Owner, Timestamp, Usage, UsagePeaks};

use crate::fingerprint::Fingerprint;

/// One execution.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRow {
    /// The number of the ledger entry that created it: the order of the history.
    pub position: u64,
    /// Its id.
    pub id: ExecutionId,
    /// Its owner.
    pub owner: Owner,
    /// The interface that requested it, for example `cli`.
    pub client: String,
    /// The command line, without secrets.
    pub command: String,
    /// The working directory.
    pub directory: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// The isolation level that was requested.
    pub level: String,
    /// The capabilities of isolation that were in force.
    pub in_force: Vec<String>,
    /// What the command policy decided, as text; empty where there is none.
    pub policy: String,
    /// When it was requested.
    pub created: Timestamp,
    /// When its first process was started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The kind of its end, for example `exited`; none while it has not ended.
    pub cause: Option<String>,
    /// The exit code, where it exited.
    pub code: Option<i32>,
    /// The number of the signal that ended it, where one did.
    pub signal: Option<i32>,
    /// How often it was started.
    pub attempts: u32,
    /// What it used; none while it has not ended.
    pub totals: Option<RunTotals>,
    /// What distinguishes its command from others; none where it has no words.
    pub fingerprint: Option<Fingerprint>,
}

/// What an execution used over all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RunTotals {
    /// Processor time and peak memory.
    pub usage: Usage,
    /// The most of each resource, as far as it was measured.
    pub peaks: UsagePeaks,
    /// Bytes of output.
    pub output_bytes: u64,
    /// Lines of output; none where they were not counted.
    pub output_lines: Option<u64>,
    /// Prompts that it showed and that were detected.
    pub prompts: u64,
}
