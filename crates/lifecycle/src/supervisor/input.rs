//! The inputs of a supervisor.

use std::time::Duration;

use ostler_model::event::TrimReason;
use ostler_model::{
    ControlCommand, LostReason, MissingCapability, Principal, ProcessEvent, StopReason, TermSize,
    Timestamp,
};

use super::effect::Timer;
use crate::readiness::ReadinessInput;

/// One input. Inputs that come too late, too early or twice change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorInput {
    /// The request was admitted; the first input of a new execution.
    Admitted {
        /// Requested capabilities that are not available.
        missing: Vec<MissingCapability>,
    },
    /// The backend has begun to spawn the attempt; commands can be sent from now on.
    Spawned,
    /// The backend could not begin to spawn.
    SpawnFailed {
        /// The step that failed.
        step: String,
        /// The cause, for people.
        message: String,
    },
    /// An event of the attempt's processes. What a request caused comes by inputs of its own,
    /// which name who made it: [`SupervisorInput::InputTaken`] and [`SupervisorInput::Frozen`].
    Process(ProcessEvent),
    /// An observation of a service.
    Observed {
        /// How long after the attempt's start.
        elapsed: Duration,
        /// The observation.
        observation: ReadinessInput,
    },
    /// A request to end a service's attempt and begin the next one.
    Restart {
        /// Who requested the restart.
        by: Principal,
        /// The reason, as text.
        reason: String,
    },
    /// A decision that the execution must end.
    Stop {
        /// Who requested the stop, and why.
        order: StopReason,
        /// Between the termination signal and the kill.
        grace: Duration,
    },
    /// A decision that the execution must end, by SIGINT at first.
    Interrupt {
        /// Who requested the stop, and why.
        order: StopReason,
        /// Between SIGINT and the termination signal.
        wait: Duration,
        /// Between the termination signal and the kill.
        grace: Duration,
    },
    /// A command that needs no decision: signal, input, resize.
    Forward(ControlCommand),
    /// A request to freeze or thaw the tree; forwarded where that changes anything.
    Freeze {
        /// True to freeze, false to thaw.
        frozen: bool,
    },
    /// The tree is frozen or thawed now.
    Frozen {
        /// True when frozen, false when thawed.
        frozen: bool,
        /// Who requested it.
        by: Principal,
    },
    /// Bytes of a write were accepted by the command's input.
    InputTaken {
        /// Who wrote them.
        by: Principal,
        /// The number of bytes.
        len: u64,
    },
    /// The command waits for an answer to a prompt.
    PromptDetected {
        /// The prompt's text.
        text: String,
        /// Whether the answer must not be displayed.
        secret: bool,
        /// The journal's end at that moment, which distinguishes prompts.
        end: u64,
    },
    /// A prompt was answered; the input itself is recorded before.
    PromptAnswered {
        /// Who answered.
        by: Principal,
    },
    /// The command was found to wait no longer at its last prompt.
    PromptGone {
        /// How many prompts had been detected by then: a later one is not meant.
        prompts: u32,
    },
    /// The terminal was resized.
    Resized {
        /// The new size.
        size: TermSize,
    },
    /// The terminal's writer's lease changed hands.
    LeaseTaken {
        /// The new holder; none when the lease was released.
        by: Option<Principal>,
    },
    /// Output was dropped.
    Trimmed {
        /// Offset of the first byte dropped.
        from: u64,
        /// Offset of the first byte kept.
        to: u64,
        /// Why it was dropped.
        reason: TrimReason,
    },
    /// A timer expired.
    Timer(Timer),
    /// Recovery found the execution running.
    Adopted {
        /// The attempt that runs.
        attempt: u32,
        /// The leader's OS pid.
        pid: u32,
        /// When it started.
        started_at: Timestamp,
    },
    /// Recovery found neither process nor record.
    Lost {
        /// Why its end is unknown.
        reason: LostReason,
        /// The newest attempt that was begun, 0 where unknown.
        attempt: u32,
    },
}

impl From<ProcessEvent> for SupervisorInput {
    fn from(event: ProcessEvent) -> Self {
        Self::Process(event)
    }
}
