//! One state, in the words of each source document (specification 01 §1, the status table).

use serde::{Deserialize, Serialize};

use crate::event::StopReason;
use crate::service::ServiceStage;
use crate::spec::{Lifetime, RestartPolicy};
use crate::state::{Phase, State};
use crate::termination::{Termination, TerminationCause};

/// The words of document 000: background processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessStatus {
    /// Not ended.
    Running,
    /// Returned 0.
    Completed,
    /// Returned something else, or a foreign signal ended it.
    Failed,
    /// Stopped or timed out.
    Terminated,
    /// Never ran, was lost or ran out of memory.
    Error,
}

/// Every value of [`ProcessStatus`], in the order of the document.
pub const PROCESS_STATUSES: [ProcessStatus; 5] = [
    ProcessStatus::Running,
    ProcessStatus::Completed,
    ProcessStatus::Failed,
    ProcessStatus::Terminated,
    ProcessStatus::Error,
];

/// All projections of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusNames {
    /// Document 000, process.
    pub process: ProcessStatus,
    /// Document 002, session.
    pub session: &'static str,
    /// Document 003, process.
    pub shell: &'static str,
    /// Document 004, service.
    pub service: &'static str,
    /// Document 001, record.
    pub record: &'static str,
    /// MCP tasks.
    pub task: &'static str,
}

impl ProcessStatus {
    /// The document's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
            Self::Error => "error",
        }
    }

    /// The status with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        PROCESS_STATUSES
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

/// The status table.
#[must_use]
pub fn status_names(state: &State, lifetime: &Lifetime) -> StatusNames {
    match (&state.ending, state.phase) {
        (Some(ending), _) if gave_up(ending, state, lifetime) => StatusNames {
            service: "crash_looping",
            ..ended(ending, state)
        },
        (Some(ending), _) => ended(ending, state),
        (None, Phase::Starting) => living("starting", first(state), state),
        (None, Phase::Stopping) => living("running", "stopping", state),
        (None, Phase::Running | Phase::Finished) => {
            living("running", running_service(state, lifetime), state)
        }
    }
}

/// Document 004's word before a program runs: `pending` until the first attempt.
const fn first(state: &State) -> &'static str {
    if state.attempt == 0 {
        "pending"
    } else {
        "starting"
    }
}

/// Whether a service ended by itself once too often: its policy would have started it again.
fn gave_up(ending: &Termination, state: &State, lifetime: &Lifetime) -> bool {
    let by_itself = matches!(
        ending.cause,
        TerminationCause::Exited
            | TerminationCause::Signaled
            | TerminationCause::OutOfMemory
            | TerminationCause::SpawnFailed { .. }
    );
    let again = match lifetime {
        Lifetime::Finite { .. }
        | Lifetime::Service {
            restart: RestartPolicy::Never,
            ..
        } => false,
        Lifetime::Service {
            restart: RestartPolicy::OnFailure { max },
            ..
        } => *max > 0 && !ending.is_success(),
        Lifetime::Service {
            restart: RestartPolicy::Always { max },
            ..
        } => *max > 0,
    };
    by_itself && again && state.attempt > 1
}

fn running_service(state: &State, lifetime: &Lifetime) -> &'static str {
    match (lifetime, state.stage, state.healthy) {
        (Lifetime::Finite { .. }, ..) => "running",
        (Lifetime::Service { .. }, _, Some(false)) => "degraded",
        (Lifetime::Service { .. }, None, _) => "starting",
        (Lifetime::Service { .. }, Some(ServiceStage::Listening), _) => "listening",
        (Lifetime::Service { .. }, Some(ServiceStage::Responding), _) => "responding",
        (Lifetime::Service { .. }, Some(ServiceStage::Running), _) => "running",
        (Lifetime::Service { .. }, Some(ServiceStage::Ready), _) => "ready",
    }
}

fn living(shell: &'static str, service: &'static str, state: &State) -> StatusNames {
    StatusNames {
        process: ProcessStatus::Running,
        session: "running",
        shell,
        service,
        record: if state.paused { "paused" } else { "running" },
        task: if state.prompt.is_some() {
            "input_required"
        } else {
            "working"
        },
    }
}

fn ended(ending: &Termination, state: &State) -> StatusNames {
    use ProcessStatus::{Completed, Error, Failed, Terminated};
    let row = |process, session, shell, service, record, task| StatusNames {
        process,
        session,
        shell,
        service,
        record,
        task,
    };
    match (&ending.cause, ending.code) {
        (TerminationCause::Exited, Some(0)) => row(
            Completed,
            "exited",
            "finished",
            "stopped",
            "completed",
            "completed",
        ),
        (TerminationCause::Exited | TerminationCause::Signaled, _) => {
            row(Failed, "exited", "failed", "failed", "failed", "completed")
        }
        (TerminationCause::TimedOut { .. }, _) => row(
            Terminated,
            "killed",
            "killed",
            "failed",
            "failed",
            "completed",
        ),
        (TerminationCause::Stopped { .. }, _) => {
            let task = match state.stopping {
                Some(StopReason::Cancelled) => "cancelled",
                _ => "completed",
            };
            row(Terminated, "killed", "killed", "stopped", "cancelled", task)
        }
        (TerminationCause::OutOfMemory, _) => {
            row(Error, "exited", "failed", "failed", "failed", "completed")
        }
        (TerminationCause::SpawnFailed { .. } | TerminationCause::Lost { .. }, _) => {
            row(Error, "exited", "failed", "failed", "failed", "failed")
        }
    }
}
