//! Executions and events as callers see them.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::MissingCapability;
use ostler_model::spec::Io;
use ostler_model::status::{StatusNames, status_names};
use ostler_model::termination::TerminationCause;
use ostler_model::{
    ByteString, Cursor, ErrorCode, EventRecord, ExecutionId, Owner, PromptEvidence, Spec, State,
    StreamName, TermSize, Timestamp,
};

use crate::error::{Error, QuotaHolder};
use crate::prompt::{PromptPlace, QuestionKind};

/// The data of one execution, without its output.
#[derive(Debug, Clone)]
pub struct ExecutionInfo {
    /// Its id.
    pub id: ExecutionId,
    /// The admitted request.
    pub spec: Arc<Spec>,
    /// Who may see it now; without a session once it was passed to the project.
    pub owner: Arc<Owner>,
    /// The observed state.
    pub state: State,
    /// The journal's end, as far as it is known without reading files.
    pub output_end: u64,
    /// OS pids that survived a stop; empty unless the kill escalation failed.
    pub survivors: Vec<u32>,
    /// The condition that a service still waits for before it is ready, as one clause; none once it
    /// is ready.
    pub waiting_for: Option<String>,
    /// Whether a caller received its id.
    pub id_disclosed: bool,
    /// Whether an earlier engine left it unfinished: if it ended in between, its end has not been
    /// notified.
    pub recovered: bool,
    /// How long its start waited for a slot within the quota; none where one was free, and under a
    /// later engine.
    pub queue_wait: Option<QueueWait>,
    /// Whether its answers report the capabilities that are missing on this host, such as a cgroup
    /// of its own: only those of the engine's first execution that lacks them do.
    pub warns_about_host: bool,
    /// Whether output is being dropped on purpose, which no event of the state reports yet.
    pub is_dropping_output: bool,
}

impl ExecutionInfo {
    /// How many of the bytes `from..to`, which could not be read, were lost rather than dropped on
    /// purpose. They must have been read before this was taken: what is dropped is on record after.
    #[must_use]
    pub fn lost_bytes(&self, from: u64, to: u64) -> u64 {
        if self.is_dropping_output && self.state.degraded.is_empty() {
            return 0;
        }
        self.state.lost_bytes(from, to)
    }

    /// Its status under the names of each tool family.
    #[must_use]
    pub fn status(&self) -> StatusNames {
        status_names(&self.state, &self.spec.lifetime)
    }

    /// The missing isolation capabilities that every answer reports unasked.
    #[must_use]
    pub fn isolation_warnings(&self) -> Vec<MissingCapability> {
        self.spec.policy.warnings(self.warns_about_host)
    }

    /// From its first start to its end, or to now.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let from = self.state.started_at.or(self.state.created_at);
        let to = self.state.ended_at.unwrap_or_else(Timestamp::now);
        from.and_then(|from| Duration::try_from(to.duration_since(from)).ok())
            .unwrap_or_default()
    }

    /// Why it did not end well, as text; none while it runs and after success.
    #[must_use]
    pub fn error_message(&self) -> Option<String> {
        let ending = self.state.ending.as_ref()?;
        let is_failure = match ending.cause {
            TerminationCause::Exited => ending.code != Some(0),
            TerminationCause::Signaled
            | TerminationCause::TimedOut { .. }
            | TerminationCause::Stopped { .. }
            | TerminationCause::OutOfMemory
            | TerminationCause::SpawnFailed { .. }
            | TerminationCause::Lost { .. } => true,
        };
        is_failure.then(|| ending.describe())
    }

    /// Whether its program ran at all.
    ///
    /// # Errors
    /// [`Error::SpawnFailed`] when it could not be executed.
    pub fn ensure_spawned(&self) -> Result<(), Error> {
        match self.state.ending.as_ref().map(|ending| &ending.cause) {
            Some(TerminationCause::SpawnFailed {
                step,
                errno,
                message,
            }) => Err(Error::SpawnFailed {
                id: self.id,
                step: step.clone(),
                errno: *errno,
                message: message.clone(),
            }),
            Some(
                TerminationCause::Exited
                | TerminationCause::Signaled
                | TerminationCause::TimedOut { .. }
                | TerminationCause::Stopped { .. }
                | TerminationCause::OutOfMemory
                | TerminationCause::Lost { .. },
            )
            | None => Ok(()),
        }
    }

    /// The current size of its terminal; none where it has none.
    #[must_use]
    pub fn size(&self) -> Option<TermSize> {
        match self.spec.io {
            Io::Pty { size } => Some(self.state.size.unwrap_or(size)),
            Io::Pipes { .. } => None,
        }
    }

    /// The position after all output known now.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        Cursor {
            offset: self.output_end,
            event: self.state.events,
        }
    }
}

/// The result of a wait.
#[derive(Debug, Clone)]
pub struct WaitOutcome {
    /// The execution's state at the end of the wait.
    pub info: ExecutionInfo,
    /// Why the wait ended.
    pub end: WaitEnd,
    /// The position up to which the wait read the output.
    pub cursor: Cursor,
}

impl WaitOutcome {
    /// The error that it is to one who needs the end: the wait ran out ([`ErrorCode::ProcessTimeout`]),
    /// or a time limit ended the command ([`ErrorCode::CommandTimeout`]).
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        let ending = match self.end {
            WaitEnd::Exit => self.info.state.ending.as_ref(),
            WaitEnd::TimedOut => return Some(ErrorCode::ProcessTimeout),
            // What was waited for has come.
            WaitEnd::Pattern(_)
            | WaitEnd::Prompt(_)
            | WaitEnd::Ready
            | WaitEnd::NotReady(_)
            | WaitEnd::Output
            | WaitEnd::Idle
            | WaitEnd::Nothing => return None,
        };
        match ending.map(|it| &it.cause) {
            Some(TerminationCause::TimedOut { .. }) => Some(ErrorCode::CommandTimeout),
            Some(
                TerminationCause::Exited
                | TerminationCause::Signaled
                | TerminationCause::Stopped { .. }
                | TerminationCause::OutOfMemory
                | TerminationCause::SpawnFailed { .. }
                | TerminationCause::Lost { .. },
            )
            | None => None,
        }
    }
}

/// Why a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitEnd {
    /// The execution ended.
    Exit,
    /// A line matched.
    Pattern(LineMatch),
    /// The command waits for an answer.
    Prompt(Prompt),
    /// The service is ready, or runs without a readiness rule.
    Ready,
    /// The service will not become ready in its present state: an attempt ended, or it runs and its
    /// application failed. Holds the observation, as text.
    NotReady(String),
    /// There is output after the requested position.
    Output,
    /// There was no output for the requested time.
    Idle,
    /// The timeout of the wait expired; the execution continues.
    TimedOut,
    /// The wait had no condition.
    Nothing,
}

/// A line of output that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMatch {
    /// When its first byte arrived.
    pub at: Timestamp,
    /// The stream it arrived on.
    pub stream: StreamName,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its number within its stream.
    pub number: u64,
    /// The line, without its end.
    pub line: ByteString,
}

/// A prompt: a command's request for input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The last unfinished line as the command wrote it (the last finished one where that is the
    /// prompt and nothing follows it), decoded lossily, escape sequences included; its end where it
    /// is longer than [`PROMPT_TEXT_BYTES`](crate::prompt::PROMPT_TEXT_BYTES). Empty where the
    /// command waits without a prompt text.
    pub text: String,
    /// Whether the answer must not be displayed (a password).
    pub secret: bool,
    /// The expected kind of answer.
    pub kind: QuestionKind,
    /// The choices offered, if any.
    pub options: Vec<String>,
    /// The meaning of an empty answer.
    pub default: Option<String>,
    /// The OS pid of the process that reads the input.
    pub pid: u32,
    /// What shows that it waits.
    pub evidence: Vec<PromptEvidence>,
    /// Whether the command asks for one answer. A shell, an interpreter and an editor wait for
    /// their next command, and a process that reads a pipe without any text waits for its data.
    pub is_question: bool,
    /// Where it stands, which tells it from a later prompt with the same text.
    pub place: PromptPlace,
}

/// The result of cleaning one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanOutcome {
    /// It is removed.
    Cleaned,
    /// It is removed, together with undecided changes in its overlay workspace.
    Discarded,
    /// It runs, and was left alone.
    Running,
    /// Unknown, or of another owner.
    NotFound,
    /// Its files could not be removed; it is still there.
    Failed(String),
}

/// One lifecycle event of one execution, for subscribers.
#[derive(Debug, Clone)]
pub struct LifecycleEvent {
    /// The execution.
    pub id: ExecutionId,
    /// Who may see it.
    pub owner: Arc<Owner>,
    /// The event.
    pub record: Arc<EventRecord>,
}

/// A start's wait for its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueWait {
    /// The time waited.
    pub waited: Duration,
    /// The quota: how many executions may run at once.
    pub limit: u32,
}

/// A start that waits for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedStart {
    /// The number of starts that are served before it.
    pub ahead: usize,
    /// The number of running executions.
    pub running: usize,
    /// The quota: how many may run at once.
    pub limit: u32,
    /// The running executions that the caller sees, oldest first.
    pub holders: Vec<QuotaHolder>,
}
