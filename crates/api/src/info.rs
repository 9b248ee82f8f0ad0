//! One execution, a list of them, and the daemon itself.

use ostler_model::status::ProcessStatus;
use ostler_model::termination::TerminationCause;
use ostler_model::{ByteString, Cursor, ExecutionId, Phase, TermSize, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::history::RunStatisticsBody;
use super::sandbox::IsolationBody;
use super::service_state::ServiceStateBody;

/// The data of one execution, without its output. Times are RFC 3339, durations seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionBody {
    /// The short id; what agents and people are shown.
    pub id: String,
    /// The full id.
    pub uuid: ExecutionId,
    /// The command as one line for people.
    pub command: String,
    /// The argument vector, or shell, `-c` and script.
    pub argv: Vec<ByteString>,
    /// The working directory.
    pub directory: ByteString,
    /// The description the caller gave.
    pub description: String,
    /// The process status: `starting`, `running`, `finished`, `failed` and so on.
    pub status: ProcessStatus,
    /// The phase, finer than `status`.
    pub phase: Phase,
    /// When it was accepted.
    pub created_at: Option<Timestamp>,
    /// When the first process ran; null before that.
    pub start_time: Option<Timestamp>,
    /// When it ended; null while it runs.
    pub end_time: Option<Timestamp>,
    /// Seconds from its start to its end, or to now.
    pub duration: f64,
    /// Why it ended; null while it runs.
    pub cause: Option<TerminationCause>,
    /// Its exit code; null while it runs and when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, for example `SIGKILL`.
    pub signal: Option<String>,
    /// What a shell would show in `$?`; null while it runs.
    pub shell_status: Option<i32>,
    /// Labels, by which lists can be filtered.
    pub labels: Vec<String>,
    /// The wall-clock limit in seconds.
    pub timeout: Option<f64>,
    /// Why it did not end successfully, as text.
    pub error_message: Option<String>,
    /// The reason given with the stop, if any.
    pub stop_reason: Option<String>,
    /// The OS pid of the newest attempt; never an identity.
    pub os_pid: Option<u32>,
    /// The number of the newest attempt, from 1.
    pub attempt: u32,
    /// Whether a service became ready; null for what has no readiness.
    pub ready: Option<bool>,
    /// The newest result of a liveness probe; null without one.
    pub healthy: Option<bool>,
    /// Its state as a service; absent for other executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Box<ServiceStateBody>>,
    /// Whether its tree is frozen.
    pub paused: bool,
    /// Isolation: requested, in force, missing.
    pub isolation: IsolationBody,
    /// What was lost while it ran, as text, for example because of a full disk.
    pub degraded: Vec<String>,
    /// The number of processes that its leader left and that were ended.
    pub leftovers: u32,
    /// OS pids that survived a stop; normally empty.
    pub survivors: Vec<u32>,
    /// Whether it outlives its session.
    pub keep: bool,
    /// The principal that started it.
    pub principal: String,
    /// The project it was started for; absent where none was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session it belongs to; null once it passed to the project.
    pub session: Option<String>,
    /// The size of its terminal; absent for one whose streams are pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TermSize>,
    /// The encoding its output is read with; null means UTF-8.
    pub encoding: Option<String>,
    /// Output bytes written so far.
    pub output_bytes: u64,
    /// Output bytes that are no longer kept.
    pub trimmed_bytes: u64,
    /// The position after everything known now.
    pub cursor: Cursor,
    /// Resource usage of its processes.
    pub usage: Usage,
    /// How long its start waited for a slot; absent where one was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<QueueWaitBody>,
    /// How the command usually ends, while it runs and where enough is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<RunStatisticsBody>,
}

/// How long a start waited for its slot within the quota.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueWaitBody {
    /// The wait in seconds.
    pub waited: f64,
    /// The largest number of executions that run at once.
    pub limit: u32,
}

impl std::fmt::Display for QueueWaitBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { waited, limit } = self;
        write!(f, "waited {waited:.1} s for one of {limit} places")
    }
}

/// A start that waits for a slot within the quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedStartBody {
    /// How many starts are served before it.
    pub ahead: usize,
    /// How many executions are running.
    pub running: usize,
    /// The largest number of executions that run at once.
    pub limit: u32,
    /// The running executions that the caller sees, oldest first.
    pub holders: Vec<QuotaHolderBody>,
}

/// An execution that holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaHolderBody {
    /// The short id of the execution.
    pub id: String,
    /// Its command line, shortened.
    pub command: String,
}

/// Executions, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionsBody {
    /// The executions of this page.
    pub executions: Vec<ExecutionBody>,
    /// How many match the request, on this page or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// The cursor of the next page, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The version of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionBody {
    /// As Semantic Versioning has it.
    pub version: String,
}

/// The state of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthBody {
    /// The version of the program.
    pub version: String,
    /// The daemon's OS pid.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// Running executions of all callers.
    pub running: u64,
    /// The state directory.
    pub state_dir: ByteString,
    /// The address that HTTP was to be served at, and why it is not; absent where it is served, or
    /// was not configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_problem: Option<String>,
}

impl ExecutionBody {
    /// Whether it ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }
}
