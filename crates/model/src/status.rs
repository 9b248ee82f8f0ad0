//! The status of an execution as each family of interfaces names it.

use serde::{Deserialize, Serialize};

use crate::event::StopReason;
use crate::service::ServiceStage;
use crate::spec::{Lifetime, RestartPolicy};
use crate::state::{Phase, State};
use crate::termination::{Termination, TerminationCause};

/// The status of a background process (the `process_*` tools).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessStatus {
    /// It has not ended.
    Running,
    /// It exited with 0.
    Completed,
    /// It exited with another code, or was killed by a signal the engine did not send.
    Failed,
    /// It was stopped or timed out.
    Terminated,
    /// It never started, was lost or ran out of memory.
    Error,
}

/// Every value of [`ProcessStatus`], in the order in which they are documented.
pub const PROCESS_STATUSES: [ProcessStatus; 5] = [
    ProcessStatus::Running,
    ProcessStatus::Completed,
    ProcessStatus::Failed,
    ProcessStatus::Terminated,
    ProcessStatus::Error,
];

/// The status words of one state, one for each family of interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusNames {
    /// The status of a background process.
    pub process: ProcessStatus,
    /// The status of a terminal session.
    pub session: &'static str,
    /// The status of a shell process.
    pub shell: &'static str,
    /// The status of a service.
    pub service: &'static str,
    /// The status of a record of the history.
    pub record: &'static str,
    /// The status of an MCP task.
    pub task: &'static str,
}

impl ProcessStatus {
    /// The word itself.
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

/// Maps a state to its status words.
#[must_use]
pub fn status_names(state: &State, lifetime: &Lifetime) -> StatusNames {
    match (&state.ending, state.phase) {
        (Some(ending), _) if is_crash_looping(ending, state, lifetime) => StatusNames {
            service: "crash_looping",
            ..ended_names(ending, state)
        },
        (Some(ending), _) => ended_names(ending, state),
        (None, Phase::Starting) => live_names("starting", unstarted_service_name(state), state),
        (None, Phase::Stopping) => live_names("running", "stopping", state),
        (None, Phase::Running | Phase::Finished) => {
            live_names("running", running_service_name(state, lifetime), state)
        }
    }
}

/// The status of a service before its program runs: `pending` until the first attempt.
const fn unstarted_service_name(state: &State) -> &'static str {
    if state.attempt == 0 {
        "pending"
    } else {
        "starting"
    }
}

/// Whether a service ended by itself after its last attempt: its policy would have started it
/// again.
fn is_crash_looping(ending: &Termination, state: &State, lifetime: &Lifetime) -> bool {
    let ended_by_itself = matches!(
        ending.cause,
        TerminationCause::Exited
            | TerminationCause::Signaled
            | TerminationCause::OutOfMemory
            | TerminationCause::SpawnFailed { .. }
    );
    let would_restart = match lifetime {
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
    ended_by_itself && would_restart && state.attempt > 1
}

fn running_service_name(state: &State, lifetime: &Lifetime) -> &'static str {
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

fn live_names(shell: &'static str, service: &'static str, state: &State) -> StatusNames {
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

fn ended_names(ending: &Termination, state: &State) -> StatusNames {
    use ProcessStatus::{Completed, Error, Failed, Terminated};
    let names = |process, session, shell, service, record, task| StatusNames {
        process,
        session,
        shell,
        service,
        record,
        task,
    };
    match (&ending.cause, ending.code) {
        (TerminationCause::Exited, Some(0)) => names(
            Completed,
            "exited",
            "finished",
            "stopped",
            "completed",
            "completed",
        ),
        (TerminationCause::Exited | TerminationCause::Signaled, _) => {
            names(Failed, "exited", "failed", "failed", "failed", "completed")
        }
        (TerminationCause::TimedOut { .. }, _) => names(
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
            names(Terminated, "killed", "killed", "stopped", "cancelled", task)
        }
        (TerminationCause::OutOfMemory, _) => {
            names(Error, "exited", "failed", "failed", "failed", "completed")
        }
        (TerminationCause::SpawnFailed { .. } | TerminationCause::Lost { .. }, _) => {
            names(Error, "exited", "failed", "failed", "failed", "failed")
        }
    }
}
