//! What can happen to an execution, as its supervisor hears of it.

use std::time::Duration;

use ostler_model::ending::WaitStatus;
use ostler_model::event::TrimReason;
use ostler_model::{
    Degraded, Limit, LostReason, Principal, StopOrder, TermSize, TimeoutKind, Timestamp,
};
use ostler_process::{ExitRecord, Order};

use super::effect::Timer;
use crate::readiness::Seen;

/// One thing that happened. Inputs that come too late, too early or twice change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The request was admitted; the first input of a new execution.
    Admitted {
        /// What was asked and cannot be had.
        missing: Vec<Degraded>,
    },
    /// The place gives birth to the attempt; orders can be handed over from now on.
    Born,
    /// The place could not begin to give birth.
    NotBorn {
        /// The step that failed.
        step: String,
        /// For people.
        message: String,
    },
    /// The program of the attempt runs.
    Started {
        /// When.
        at: Timestamp,
        /// Its OS pid.
        pid: u32,
    },
    /// Output up to here is in the journal.
    Output {
        /// The journal's end.
        end: u64,
    },
    /// A clock of the plan ran out and the ladder began.
    ClockRanOut {
        /// Which.
        clock: TimeoutKind,
    },
    /// Output does not reach the disk.
    JournalFailed {
        /// For people.
        detail: String,
    },
    /// Output reaches the disk again.
    JournalReturned {
        /// What is gone nevertheless, from and to.
        missing: Vec<(u64, u64)>,
    },
    /// The leader ended well and left processes that go on in its place.
    Detached {
        /// How it ended.
        status: WaitStatus,
    },
    /// Something was seen of a service.
    Seen {
        /// How long after the attempt's start.
        elapsed: Duration,
        /// What.
        seen: Seen,
    },
    /// Somebody wants a service's attempt ended and the next one begun.
    Restart {
        /// Who.
        by: Principal,
        /// Why, in words.
        reason: String,
    },
    /// The attempt is over and left its record.
    Exited(Box<ExitRecord>),
    /// The attempt is over and left none.
    Gone,
    /// Somebody decided that it must end.
    Stop {
        /// Who and why.
        order: StopOrder,
        /// Between the polite request and the kill.
        grace: Duration,
    },
    /// An order that needs no decision: signal, input, resize.
    Pass(Order),
    /// Somebody wants the tree to stand still, or to go on; passed on where that changes
    /// anything.
    Freeze {
        /// Which of both.
        frozen: bool,
    },
    /// The tree stands still now, or goes on.
    Frozen {
        /// Which of both.
        frozen: bool,
        /// Whose doing it is.
        by: Principal,
    },
    /// The tree reached a limit.
    LimitHit {
        /// Which.
        limit: Limit,
    },
    /// Bytes of a write were taken.
    InputTaken {
        /// From whom.
        by: Principal,
        /// How many.
        len: u64,
    },
    /// The command was seen waiting for an answer.
    PromptSeen {
        /// What it asks.
        text: String,
        /// Whether the answer must not be shown.
        secret: bool,
        /// The journal's end at that moment, which tells prompts apart.
        end: u64,
    },
    /// A prompt was answered; the input itself is told before.
    PromptAnswered {
        /// By whom.
        by: Principal,
    },
    /// The terminal took its new size.
    Resized {
        /// The size.
        size: TermSize,
    },
    /// The terminal's writer's lease changed hands.
    LeaseTaken {
        /// Who holds it; none when it was handed back.
        by: Option<Principal>,
    },
    /// Output was dropped.
    Trimmed {
        /// First byte dropped.
        from: u64,
        /// First byte kept.
        to: u64,
        /// Why.
        reason: TrimReason,
    },
    /// A timer that was set ran out.
    Timer(Timer),
    /// Recovery found it alive.
    Adopted {
        /// The attempt found.
        attempt: u32,
        /// The leader's OS pid.
        pid: u32,
        /// When it started.
        started_at: Timestamp,
    },
    /// Recovery found neither process nor record.
    Lost {
        /// Why.
        reason: LostReason,
        /// The newest attempt that was begun, 0 where that is not known.
        attempt: u32,
    },
}
