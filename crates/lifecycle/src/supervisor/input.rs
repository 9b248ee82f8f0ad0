//! The inputs of a supervisor.

use std::time::Duration;

use ostler_model::event::TrimReason;
use ostler_model::termination::WaitStatus;
use ostler_model::{ControlCommand, ExitRecord};
use ostler_model::{
    LimitKind, LostReason, MissingCapability, Principal, StopReason, TermSize, TimeoutKind,
    Timestamp,
};

use super::effect::Timer;
use crate::readiness::ReadinessInput;

/// One thing that happened. Inputs that come too late, too early or twice change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorInput {
    /// The request was admitted; the first input of a new execution.
    Admitted {
        /// What was asked and cannot be had.
        missing: Vec<MissingCapability>,
    },
    /// The place gives birth to the attempt; orders can be handed over from now on.
    Spawned,
    /// The place could not begin to give birth.
    SpawnFailed {
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
    /// A clock of the plan ran out and the kill escalation began.
    TimeoutFired {
        /// Which.
        clock: TimeoutKind,
    },
    /// Output does not reach the disk.
    JournalFailed {
        /// For people.
        detail: String,
    },
    /// Output reaches the disk again.
    JournalRecovered {
        /// What is gone nevertheless, from and to.
        missing: Vec<(u64, u64)>,
    },
    /// The leader ended well and left processes that go on in its place.
    Detached {
        /// How it ended.
        status: WaitStatus,
    },
    /// Something was seen of a service.
    Observed {
        /// How long after the attempt's start.
        elapsed: Duration,
        /// What.
        observation: ReadinessInput,
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
    ShimGone,
    /// Somebody decided that it must end.
    Stop {
        /// Who and why.
        order: StopReason,
        /// Between the polite request and the kill.
        grace: Duration,
    },
    /// An order that needs no decision: signal, input, resize.
    Forward(ControlCommand),
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
        limit: LimitKind,
    },
    /// Bytes of a write were taken.
    InputTaken {
        /// From whom.
        by: Principal,
        /// How many.
        len: u64,
    },
    /// The command was seen waiting for an answer.
    PromptDetected {
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
