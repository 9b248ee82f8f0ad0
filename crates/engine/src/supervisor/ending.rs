//! How an execution ended, decided from what was recorded and nothing else.

use ostler_model::ending::WaitStatus;
use ostler_model::{Cause, Ending, StopOrder};
use ostler_process::Ladder;

/// What is known of a leader's end.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// As waitid(2) told.
    pub status: WaitStatus,
    /// Whether the kill ladder had begun, and why.
    pub ladder: Option<Ladder>,
    /// Whether a limit on memory killed it.
    pub out_of_memory: bool,
    /// The first decision that it must end, if there was one.
    pub stop: Option<&'a StopOrder>,
    /// Whether it was meant to stay: then a stop is why it does not come back, even if it
    /// ended by itself before the ladder began.
    pub service: bool,
}

/// The ending this evidence shows. The first stop decision stands; a command that ended before
/// any ladder began ended by itself, whatever was decided meanwhile.
#[must_use]
pub fn of(evidence: Evidence<'_>) -> Ending {
    Ending::new(cause(evidence), evidence.status)
}

fn cause(evidence: Evidence<'_>) -> Cause {
    match (evidence.ladder, evidence.stop) {
        (None, Some(stop)) if evidence.service => ordered(stop),
        (None, _) => by_itself(evidence),
        (Some(_), Some(stop)) => ordered(stop),
        (Some(Ladder::Clock(clock)), None) => Cause::TimedOut { clock },
        (Some(Ladder::Ordered), None) => Cause::Stopped { reason: None },
    }
}

const fn by_itself(evidence: Evidence<'_>) -> Cause {
    if evidence.out_of_memory {
        return Cause::OutOfMemory;
    }
    match evidence.status {
        WaitStatus::Code(_) => Cause::Exited,
        WaitStatus::Signal(_) => Cause::Signaled,
    }
}

/// The cause that a stop decision amounts to.
#[must_use]
pub fn ordered(stop: &StopOrder) -> Cause {
    let because = |reason: &str| Cause::Stopped {
        reason: Some(reason.to_owned()),
    };
    match stop {
        StopOrder::Requested { reason, .. } => Cause::Stopped {
            reason: reason.clone(),
        },
        StopOrder::TimedOut { clock } => Cause::TimedOut { clock: *clock },
        StopOrder::SessionEnded => because("its session ended"),
        StopOrder::Shutdown => because("the engine was shut down"),
        StopOrder::Cancelled => because("the request was cancelled"),
        StopOrder::LimitHit { limit } => because(match limit {
            ostler_model::Limit::Disk => "its workspace grew beyond the limit",
            ostler_model::Limit::Pids
            | ostler_model::Limit::Memory
            | ostler_model::Limit::Cpu
            | ostler_model::Limit::OpenFiles
            | ostler_model::Limit::FileSize => "a limit was passed",
        }),
    }
}
