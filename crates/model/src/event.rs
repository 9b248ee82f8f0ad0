//! What happened: one closed list, from which every state, view and record is folded.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::isolation::{LimitKind, MissingCapability};
use crate::owner::Principal;
use crate::service::{ReadinessSignal, ServicePort, ServiceStage};
use crate::snapshot::{Capability, Usage};
use crate::spec::TermSize;
use crate::termination::{LostReason, Termination, TimeoutKind, WaitStatus};

/// One event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Its number, from 0; the event part of a [`Cursor`](crate::Cursor).
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// Output bytes before it: this orders events and output.
    pub offset: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Everything that can happen to an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The request was accepted; the spec stands beside the events.
    Created {
        /// What was asked and cannot be had here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<MissingCapability>,
    },
    /// The request was turned down; only the ledger ever holds this.
    Refused {
        /// The stable code of the refusal.
        code: crate::ErrorCode,
        /// What the caller was told.
        message: String,
    },
    /// A process runs.
    Started {
        /// Which attempt, from 1.
        attempt: u32,
        /// Its OS pid, for people; never an identity.
        pid: u32,
    },
    /// An attempt never ran.
    SpawnFailed {
        /// Which attempt.
        attempt: u32,
        /// The step that failed, for example `exec`.
        step: String,
        /// The kernel's error number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        /// For people.
        message: String,
    },
    /// What a service listens on changed.
    Ports {
        /// Which attempt.
        attempt: u32,
        /// All of them now; empty when the last one closed.
        ports: Vec<ServicePort>,
        /// Where it is reached, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// A service came further on its way to ready.
    Stage {
        /// Which attempt.
        attempt: u32,
        /// `Listening` or `Responding`; the others are [`Event::Ready`].
        stage: ServiceStage,
        /// What showed it.
        sign: ReadinessSignal,
    },
    /// A service answered its readiness rule, or lives with nothing to look at.
    Ready {
        /// Which attempt.
        attempt: u32,
        /// What showed it, as one sentence.
        evidence: String,
        /// The same, sign by sign.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signs: Vec<ReadinessSignal>,
        /// Whether there was nothing to look at: it is running, not ready.
        #[serde(default)]
        unprobed: bool,
        /// What deserves a warning, for example another port than the one asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// A service that lives was seen to be ill, before or after it was ready, or well again.
    Health {
        /// Whether it is well.
        ok: bool,
        /// What was seen.
        detail: String,
    },
    /// The leader of a service ended well and left processes that go on in its place.
    Detached {
        /// Which attempt.
        attempt: u32,
        /// How the leader ended.
        status: WaitStatus,
    },
    /// The command waits for an answer.
    PromptDetected {
        /// The prompt's text.
        text: String,
        /// Whether the answer must not be shown.
        secret: bool,
    },
    /// Somebody answered a prompt.
    PromptAnswered {
        /// Who.
        by: Principal,
    },
    /// Bytes went in; their content is not kept.
    Input {
        /// From whom.
        by: Principal,
        /// How many bytes were taken.
        len: u64,
    },
    /// The terminal changed its size.
    Resized {
        /// The new size.
        size: TermSize,
    },
    /// The tree was frozen.
    Paused {
        /// By whom.
        by: Principal,
    },
    /// The tree goes on.
    Resumed {
        /// By whom.
        by: Principal,
    },
    /// Somebody holds the terminal's single writer lease.
    LeaseTaken {
        /// Who; none when it was handed back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Resources were measured.
    Sampled {
        /// What was seen.
        usage: Usage,
    },
    /// What a command did to a workspace whose writes were kept apart was put on the host, or
    /// forgotten.
    Workspace {
        /// What became of it.
        fate: crate::overlay::OverlayOutcome,
        /// By whom.
        by: Principal,
    },
    /// A limit was reached.
    LimitHit {
        /// Which.
        limit: LimitKind,
    },
    /// What an attempt of level high left in its workspace that is run or obeyed unasked.
    Autorun {
        /// What, and whether everything was looked at.
        report: crate::autorun::AutorunReport,
    },
    /// Something promised cannot be kept any more, for example the disk is full.
    Degraded {
        /// What is gone.
        ability: DegradedCapability,
        /// For people.
        detail: String,
    },
    /// Somebody or a clock decided that it must end.
    Stopping {
        /// Who or what.
        order: StopReason,
    },
    /// The leader of an attempt ended.
    Exited {
        /// Which attempt.
        attempt: u32,
        /// How.
        status: WaitStatus,
        /// Processes it left behind that were ended.
        #[serde(default)]
        leftovers: u32,
        /// Whether a limit on memory killed it.
        #[serde(default)]
        out_of_memory: bool,
        /// What the tree used.
        #[serde(default)]
        usage: Usage,
    },
    /// An attempt is ended so that the next one begins at once.
    Restarting {
        /// Which attempt is ended.
        attempt: u32,
        /// Who asked; none where its health rule did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        /// Why, in words.
        reason: String,
    },
    /// The next attempt waits.
    Backoff {
        /// The attempt that will follow.
        attempt: u32,
        /// When.
        until: Timestamp,
        /// Why nobody can say how the attempt before ended; none where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<LostReason>,
    },
    /// A new daemon found it alive.
    Adopted {
        /// The attempt found.
        attempt: u32,
    },
    /// Output before this offset (or in a gap) is gone.
    Trimmed {
        /// First byte dropped.
        from: u64,
        /// First byte kept after the gap.
        to: u64,
        /// Why.
        reason: TrimReason,
    },
    /// The last event of an execution's run.
    Finished {
        /// How it ended.
        ending: Termination,
    },
}

/// Who or what decided that an execution must end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StopReason {
    /// A caller asked.
    Requested {
        /// Who.
        by: Principal,
        /// What they gave as the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether at once, without grace.
        force: bool,
    },
    /// A clock ran out.
    TimedOut {
        /// Which.
        clock: TimeoutKind,
    },
    /// Its session ended.
    SessionEnded,
    /// The engine shuts down and this one is not durable.
    Shutdown,

    /// The one request that waited for it was cancelled or its stream closed (F7).
    Cancelled,
    /// A limit that is kept by accounting was passed.
    LimitHit {
        /// Which.
        limit: LimitKind,
    },
}

/// What can be lost while a command runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradedCapability {
    /// Output cannot be written to disk.
    Journal,
    /// An enforced [`Capability`] is gone.
    Enforcement(Capability),
}

/// Why output was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrimReason {
    /// Cleared on request (A1).
    Cleared,
    /// Retention made room.
    Retention,
    /// The disk was full.
    DiskFull,
}
