//! What callers are told.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::isolation::MissingCapability;
use ostler_model::spec::Io;
use ostler_model::status::{StatusNames, status_names};
use ostler_model::termination::TerminationCause;
use ostler_model::{
    ByteString, Cursor, EventRecord, ExecutionId, Owner, Spec, State, StreamName, TermSize,
    Timestamp,
};

use crate::error::Error;
use crate::prompt::QuestionKind;
use crate::quota_queue::QueueWait;

/// Everything known of one execution besides its output.
#[derive(Debug, Clone)]
pub struct ExecutionInfo {
    /// Its id.
    pub id: ExecutionId,
    /// What was asked.
    pub spec: Arc<Spec>,
    /// Who may see it now; its session is gone once it was passed to the project.
    pub owner: Arc<Owner>,
    /// What was observed.
    pub state: State,
    /// The journal's end, as far as it is known without looking.
    pub output_end: u64,
    /// OS pids that survived a stop; empty, or an error to be told.
    pub survivors: Vec<u32>,
    /// What a service waits for on its way to ready, as one clause; none of what is ready.
    pub waiting_for: Option<String>,
    /// Whether somebody was told its id.
    pub id_disclosed: bool,
    /// Whether an earlier engine left it unfinished: its end, if it ended, was told to nobody
    /// by then.
    pub recovered: bool,
    /// How long its start waited for a place; none where one was free, and under a later
    /// engine.
    pub queue_wait: Option<QueueWait>,
    /// Whether its answers say what no command gets on this host, such as a cgroup of its own:
    /// those of the first one do that lacks it under an engine.
    pub warns_about_host: bool,
}

impl ExecutionInfo {
    /// Its status in the words of every document.
    #[must_use]
    pub fn status(&self) -> StatusNames {
        status_names(&self.state, &self.spec.lifetime)
    }

    /// What of its isolation is missing and is told without being asked for.
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

    /// Why it did not end well, in words; none while it lives and after success.
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

    /// The size of its terminal now; none where it has none.
    #[must_use]
    pub fn size(&self) -> Option<TermSize> {
        match self.spec.io {
            Io::Pty { size } => Some(self.state.size.unwrap_or(size)),
            Io::Pipes { .. } => None,
        }
    }

    /// The position after everything known now.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        Cursor {
            offset: self.output_end,
            event: self.state.events,
        }
    }
}

/// How a wait was over.
#[derive(Debug, Clone)]
pub struct WaitOutcome {
    /// What was known then.
    pub info: ExecutionInfo,
    /// Why it was over.
    pub end: WaitEnd,
    /// The position up to which the wait looked.
    pub cursor: Cursor,
}

/// Why a wait was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitEnd {
    /// The execution ended.
    Exit,
    /// A line matched.
    Pattern(LineMatch),
    /// The command waits for an answer.
    Prompt(Prompt),
    /// The service is ready, or running with nothing to look at.
    Ready,
    /// The service will not become ready as it is: an attempt ended, or it lives and its
    /// application does not. Says what was seen.
    NotReady(String),
    /// There is output after the position asked.
    Output,
    /// There was no output for the time asked.
    Idle,
    /// The caller's time ran out; the execution goes on.
    TimedOut,
    /// Nothing was waited for.
    Nothing,
}

/// A line of output that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMatch {
    /// When its first byte came.
    pub at: Timestamp,
    /// Which stream it came on.
    pub stream: StreamName,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its number within its stream.
    pub number: u64,
    /// The line, without its end.
    pub line: ByteString,
}

/// A command's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The last unfinished line as the command wrote it (the last finished one where that asks
    /// and nothing follows it), decoded lossily, escape sequences included; its end where it is
    /// longer than [`PROMPT_TEXT_BYTES`](crate::prompt::PROMPT_TEXT_BYTES). Empty where it
    /// waits without a word.
    pub text: String,
    /// Whether the answer must not be shown.
    pub secret: bool,
    /// What kind of answer is wanted.
    pub kind: QuestionKind,
    /// What there is to choose from.
    pub options: Vec<String>,
    /// What an empty answer stands for.
    pub default: Option<String>,
    /// The OS pid of the process that waits.
    pub pid: u32,
}

/// What became of one id in a clean request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanOutcome {
    /// It is gone.
    Cleaned,
    /// It is gone, and with it changes to its workspace that were kept apart and that nobody
    /// had decided about.
    Discarded,
    /// It runs, and was left alone.
    Running,
    /// Unknown, or somebody else's.
    NotFound,
    /// Its files could not be removed; it is still there.
    Failed(String),
}

/// One lifecycle event of one execution, for subscribers.
#[derive(Debug, Clone)]
pub struct LifecycleEvent {
    /// Whose.
    pub id: ExecutionId,
    /// Who may see it.
    pub owner: Arc<Owner>,
    /// What happened.
    pub record: Arc<EventRecord>,
}
