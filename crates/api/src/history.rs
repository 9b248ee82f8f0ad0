//! The history of executions.

use std::time::Duration;

use ostler_model::{ExecutionId, Timestamp, duration};
use serde::{Deserialize, Serialize};

/// One page of the history, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryPageBody {
    /// The executions.
    pub executions: Vec<HistoryEntryBody>,
    /// The `before` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Whether the page includes everything that had happened.
    #[serde(flatten)]
    pub freshness: HistoryFreshnessBody,
}

/// One execution with how its command usually ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryDetailBody {
    /// The execution.
    #[serde(flatten)]
    pub execution: HistoryEntryBody,
    /// How the same command in the same directory ended in the last 30 days; absent below five
    /// ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<RunStatisticsBody>,
    /// Whether the answer includes everything that had happened.
    #[serde(flatten)]
    pub freshness: HistoryFreshnessBody,
}

/// How far the history is behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryFreshnessBody {
    /// Events that are not included yet.
    #[serde(default, skip_serializing_if = "super::page::is_zero")]
    pub behind: u64,
    /// Why they are not, where the history cannot be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_reason: Option<String>,
}

/// One execution, as it is remembered after its output and its files are gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntryBody {
    /// Its place in the history; smaller is older.
    pub position: u64,
    /// The short id.
    pub id: String,
    /// The full id.
    pub uuid: ExecutionId,
    /// Who started it.
    pub principal: String,
    /// The project it was started for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session it was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The task it was started for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The interface that requested it: `cli`, `mcp`, `rest` or `library`.
    pub client: String,
    /// The command line, without secrets.
    pub command: String,
    /// The working directory.
    pub cwd: String,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The isolation level that was requested.
    pub level: String,
    /// The capabilities of isolation that were in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<String>,
    /// What the command policy decided; absent where no rule matched.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// `running`, `succeeded`, `failed`, `timed_out`, `stopped` or `lost`.
    pub status: String,
    /// The kind of its end, for example `out_of_memory`; absent while it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The exit code, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When its first process was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Milliseconds from the start of the first process to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How often it was started.
    pub attempts: u32,
    /// What it used; absent while it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<RunTotalsBody>,
    /// Equal for commands that differ only in numbers, hashes and temporary paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What an execution used over all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunTotalsBody {
    /// User time in microseconds.
    pub user_us: u64,
    /// System time in microseconds.
    pub system_us: u64,
    /// The largest resident set of one of its processes, in bytes.
    pub max_rss_bytes: u64,
    /// The most processor time between two samples, in percent of one core; what was not measured is
    /// absent, here and below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_cpu_percent: Option<f32>,
    /// The most resident memory of the whole tree in a sample, or of one process, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// The most bytes by which its workspace had grown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_disk_bytes: Option<u64>,
    /// The most living processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_processes: Option<u32>,
    /// Bytes read from storage, up to the last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage, up to the last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes received through its own network namespace, up to the last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Bytes sent through its own network namespace, up to the last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Bytes of output.
    pub output_bytes: u64,
    /// Lines of output; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_lines: Option<u64>,
    /// Prompts that were detected.
    pub prompts: u64,
}

/// How a command usually ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatisticsBody {
    /// The number of ends that count.
    pub runs: u64,
    /// Of these, how many failed.
    pub failures: u64,
    /// The median duration, in milliseconds.
    pub median_ms: u64,
    /// The 90th percentile of the duration, in milliseconds.
    pub p90_ms: u64,
    /// The median of the peak of resident memory, in bytes.
    pub peak_memory_bytes: u64,
}

impl RunStatisticsBody {
    /// One clause for people, for example `4m 10s, 9 in 10 at most 6m; 1 of 20 failed`.
    #[must_use]
    pub fn describe(&self) -> String {
        let time = |milliseconds| duration::compact(Duration::from_millis(milliseconds));
        let failures = match self.failures {
            0 => "none".to_owned(),
            failures => failures.to_string(),
        };
        format!(
            "{}, 9 in 10 at most {}; {failures} of {} failed",
            time(self.median_ms),
            time(self.p90_ms),
            self.runs
        )
    }
}
