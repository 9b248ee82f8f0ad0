//! The commands that a driver takes, and their replies.

use std::time::Duration;

use ostler_backend::{ControlCommand, ControlError, IdempotentInput, InputProgress};
use ostler_journal::WriteError;
use ostler_model::{InputId, LimitKind, MissingCapability, Principal, StopReason};
use tokio::sync::oneshot;

/// A command to a driver.
#[derive(Debug)]
pub(crate) enum DriverCommand {
    Stop {
        /// Who requested the stop, and why.
        order: StopReason,
        /// Between the termination signal and the kill.
        grace: Duration,
    },
    /// Stop it, by SIGINT at first.
    Interrupt {
        /// Who requested the stop, and why.
        order: StopReason,
        /// Between SIGINT and the termination signal.
        wait: Duration,
        /// Between the termination signal and the kill.
        grace: Duration,
    },
    /// Forward a command that needs no decision.
    Forward {
        /// A signal or a size.
        command: ControlCommand,
        /// Receives whether it arrived.
        reply: oneshot::Sender<Result<(), ControlError>>,
    },
    /// Write to its input.
    Write(InputWrite),
    /// Freeze or thaw the tree.
    Freeze(FreezeRequest),
    /// End a service's attempt and begin the next one.
    Restart {
        by: Principal,
        /// The reason, as text.
        reason: String,
    },
    /// A wait has detected a prompt.
    PromptDetected {
        prompt: PromptRecord,
        /// Resolves when it is recorded.
        reply: oneshot::Sender<()>,
    },
    /// The command waits no longer at a prompt.
    PromptGone {
        /// The number of that prompt among those of the execution: a later one is not meant.
        prompts: u32,
    },
    /// A limit that is enforced by accounting was exceeded.
    LimitHit(LimitKind),
    /// A limit that is enforced by accounting is not fully in force any more.
    CapabilityLost(MissingCapability),
    /// Output was cleared.
    OutputCleared {
        /// Offset of the first byte dropped.
        from: u64,
        /// Offset of the first byte kept.
        to: u64,
        /// Who requested it.
        by: Principal,
        /// Resolves when it is recorded and no copy holds the output any more; a driver that is done
        /// drops it.
        reply: oneshot::Sender<Result<(), WriteError>>,
    },
}

/// A prompt to record.
#[derive(Debug)]
pub(crate) struct PromptRecord {
    pub(crate) text: String,
    /// Whether the answer must not be displayed.
    pub(crate) secret: bool,
    /// The journal's end at that moment.
    pub(crate) end: u64,
}

/// A request to freeze or thaw a tree.
#[derive(Debug)]
pub(crate) struct FreezeRequest {
    /// True to freeze, false to thaw.
    pub(crate) frozen: bool,
    pub(crate) by: Principal,
    /// Receives whether it is so, once recorded; dropped when the tree ends before.
    pub(crate) reply: oneshot::Sender<Result<bool, ControlError>>,
}

/// Bytes for a command, or the end of its input, or both.
#[derive(Debug)]
pub(crate) struct InputWrite {
    pub(crate) by: Principal,
    pub(crate) bytes: Vec<u8>,
    /// Whether the input is closed after them.
    pub(crate) close: bool,
    /// The purpose of the bytes.
    pub(crate) kind: WriteKind,
    /// Whether they are left out of the record of input.
    pub(crate) is_secret: bool,
    /// Refused as busy unless exactly this many writes are finished and no other is under way.
    pub(crate) only_after: Option<u64>,
    /// Receives how many were accepted.
    pub(crate) reply: oneshot::Sender<Result<WriteResult, ControlError>>,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteResult {
    /// Bytes that the command's input accepted.
    pub(crate) accepted: u64,
    /// The journal's end when the first of them was sent: output before it cannot be the reply.
    pub(crate) sent_offset: u64,
    /// The answer to [`WriteKind::QueryProgress`].
    pub(crate) progress: ProgressReply,
}

/// The shim's record of an input that is written at most once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProgressReply {
    /// Not queried, or the shim is of an earlier version without that record.
    #[default]
    Unsupported,
    /// None of it was accepted.
    Nothing,
    /// Some or all of it was accepted.
    Some(InputProgress),
}

/// The purpose of the bytes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Input,
    /// Input that is written at most once, however often it is requested.
    Idempotent(IdempotentInput),
    /// No bytes: queries how much of such an input was accepted.
    QueryProgress(InputId),
    /// The answer to a prompt: one line and its line end.
    PromptReply,
    /// A terminal's automatic reply, which is not an event.
    TerminalReply,
}
