//! The termination of an execution, derived only from what was recorded.

use ostler_model::KillReason;
use ostler_model::termination::WaitStatus;
use ostler_model::{StopReason, Termination, TerminationCause};

/// The evidence about a leader's end.
#[derive(Debug, Clone, Copy)]
pub struct ExitEvidence<'a> {
    /// The status from waitid(2).
    pub status: WaitStatus,
    /// Whether the kill escalation had begun, and why.
    pub ladder: Option<KillReason>,
    /// Whether a memory limit killed it.
    pub out_of_memory: bool,
    /// The first stop decision, if there was one.
    pub stop: Option<&'a StopReason>,
    /// Whether it was meant to stay up: then a stop is the cause of its end, even if it ended by
    /// itself before the kill escalation began.
    pub service: bool,
}

/// The termination that follows from this evidence. The first stop decision stands; a command that
/// ended before any kill escalation began, and before any SIGINT, ended by itself, whatever was decided
/// meanwhile.
#[must_use]
pub fn termination_of(exit: ExitEvidence<'_>) -> Termination {
    Termination::new(termination_cause(exit), exit.status)
}

fn termination_cause(exit: ExitEvidence<'_>) -> TerminationCause {
    match (exit.ladder, exit.stop) {
        (None, Some(stop)) if exit.service || is_interrupt(stop) => stop_cause(stop),
        (None, _) => natural_cause(exit),
        (Some(_), Some(stop)) => stop_cause(stop),
        (Some(KillReason::Timeout(clock)), None) => TerminationCause::TimedOut { clock },
        (Some(KillReason::Requested), None) => TerminationCause::Stopped { reason: None },
    }
}

/// Whether a stop begins before the kill escalation.
const fn is_interrupt(stop: &StopReason) -> bool {
    matches!(
        stop,
        StopReason::Requested {
            interrupt: true,
            ..
        }
    )
}

const fn natural_cause(exit: ExitEvidence<'_>) -> TerminationCause {
    if exit.out_of_memory {
        return TerminationCause::OutOfMemory;
    }
    match exit.status {
        WaitStatus::Code(_) => TerminationCause::Exited,
        WaitStatus::Signal(_) => TerminationCause::Signaled,
    }
}

/// The cause that a stop decision amounts to.
#[must_use]
pub fn stop_cause(stop: &StopReason) -> TerminationCause {
    let stopped = |reason: &str| TerminationCause::Stopped {
        reason: Some(reason.to_owned()),
    };
    match stop {
        StopReason::Requested { reason, .. } => TerminationCause::Stopped {
            reason: reason.clone(),
        },
        StopReason::TimedOut { clock } => TerminationCause::TimedOut { clock: *clock },
        StopReason::SessionEnded => stopped("its session ended"),
        StopReason::Shutdown => stopped("the engine was shut down"),
        StopReason::Cancelled => stopped("the request was cancelled"),
        StopReason::LimitHit { limit } => stopped(match limit {
            ostler_model::LimitKind::Disk => "its workspace grew beyond the limit",
            ostler_model::LimitKind::Pids
            | ostler_model::LimitKind::Memory
            | ostler_model::LimitKind::Cpu
            | ostler_model::LimitKind::OpenFiles
            | ostler_model::LimitKind::FileSize => "a limit was passed",
        }),
    }
}
