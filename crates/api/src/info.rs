//! One execution, a list of them, and the daemon itself.

use ostler_model::status::ProcessStatus;
use ostler_model::termination::TerminationCause;
use ostler_model::{ByteString, Cursor, ExecutionId, Phase, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::sandbox::IsolationBody;
use super::service::ServiceStateBody;

/// Everything known of one execution besides its output. Times are RFC 3339, durations
/// seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionBody {
    /// The short id; what agents and people are shown.
    pub id: String,
    /// The whole id.
    pub uuid: ExecutionId,
    /// The command as one line for people.
    pub command: String,
    /// The argument vector, or shell, `-c` and script.
    pub argv: Vec<ByteString>,
    /// The working directory.
    pub directory: ByteString,
    /// What the caller called it.
    pub description: String,
    /// The status in the words of document 000.
    pub status: ProcessStatus,
    /// Where it is on its way, finer than `status`.
    pub phase: Phase,
    /// When it was accepted.
    pub created_at: Option<Timestamp>,
    /// When the first process ran; null before that.
    pub start_time: Option<Timestamp>,
    /// When it ended; null while it lives.
    pub end_time: Option<Timestamp>,
    /// Seconds from its start to its end, or to now.
    pub duration: f64,
    /// Why it ended; null while it lives.
    pub cause: Option<TerminationCause>,
    /// The status it returned; null while it lives and when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, for example `SIGKILL`.
    pub signal: Option<String>,
    /// What a shell would show in `$?`; null while it lives.
    pub shell_status: Option<i32>,
    /// For filtering.
    pub labels: Vec<String>,
    /// The wall-clock limit in seconds.
    pub timeout: Option<f64>,
    /// Why it did not end well, in words.
    pub error_message: Option<String>,
    /// The reason given with the stop, where one was.
    pub stop_reason: Option<String>,
    /// The OS pid of the newest attempt; never an identity.
    pub os_pid: Option<u32>,
    /// The newest attempt, from 1.
    pub attempt: u32,
    /// Whether a service was seen ready; null for what has nothing to be ready for.
    pub ready: Option<bool>,
    /// The newest answer of a liveness probe; null without one.
    pub healthy: Option<bool>,
    /// What is known of it as a service; absent for what is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Box<ServiceStateBody>>,
    /// Whether its tree is frozen.
    pub paused: bool,
    /// Isolation: asked, in force, missing.
    pub isolation: IsolationBody,
    /// What was lost while it ran, in words, for example a full disk.
    pub degraded: Vec<String>,
    /// Processes its leader left behind that were ended.
    pub leftovers: u32,
    /// OS pids that survived a stop; empty unless something is wrong.
    pub survivors: Vec<u32>,
    /// Whether it outlives its session.
    pub keep: bool,
    /// The session it belongs to; null once it passed to the project.
    pub session: Option<String>,
    /// The encoding its output is read with; null means UTF-8.
    pub encoding: Option<String>,
    /// Output bytes written so far.
    pub output_bytes: u64,
    /// Output bytes that are gone.
    pub trimmed_bytes: u64,
    /// The position after everything known now.
    pub cursor: Cursor,
    /// What its processes used.
    pub usage: Usage,
    /// How long its start waited for a place; absent where one was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<QueueWaitBody>,
}

/// How long a start waited for its place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueWaitBody {
    /// Seconds.
    pub waited: f64,
    /// How many executions may run at once.
    pub limit: u32,
}

impl std::fmt::Display for QueueWaitBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { waited, limit } = self;
        write!(f, "waited {waited:.1} s for one of {limit} places")
    }
}

/// A start that waits for a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedStartBody {
    /// How many starts are served before it.
    pub ahead: usize,
    /// How many executions run.
    pub running: usize,
    /// How many may.
    pub limit: u32,
    /// What runs, as far as the caller sees it, oldest first.
    pub holders: Vec<QuotaHolderBody>,
}

/// An execution that holds a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaHolderBody {
    /// Its id.
    pub id: String,
    /// Its command line, cut.
    pub command: String,
}

/// Executions, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionsBody {
    /// The executions.
    pub executions: Vec<ExecutionBody>,
    /// How many there are that the request asks for, on this page or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// The cursor of the next page, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How the daemon is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthBody {
    /// The version of the program.
    pub version: String,
    /// The daemon's OS pid.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// Running executions, of everybody.
    pub running: u64,
    /// Where its state is.
    pub state_dir: ByteString,
}

impl ExecutionBody {
    /// Whether it ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }
}
