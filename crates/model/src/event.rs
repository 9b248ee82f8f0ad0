//! Events: one closed list, from which every state, view and record is folded.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::alert::{AlertKind, AlertState};
use crate::capability::Capability;
use crate::capability::MissingCapability;
use crate::context_id::ContextId;
use crate::interaction::InteractionState;
use crate::isolation::LimitKind;
use crate::owner::Principal;
use crate::service::{ReadinessSignal, ServicePort, ServiceStage};
use crate::signal::Signal;
use crate::snapshot::Usage;
use crate::term_size::TermSize;
use crate::termination::{LostReason, Termination, TimeoutKind, WaitStatus};

/// One event with its position in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// The event's number, from 0; the event part of a [`Cursor`](crate::Cursor).
    pub seq: u64,
    /// When the event happened.
    pub at: Timestamp,
    /// Output bytes before the event: this orders events and output.
    pub offset: u64,
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
}

/// Everything that can happen to an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The request was accepted; its [`Spec`](crate::Spec) is stored next to the events.
    Created {
        /// Capabilities that were requested and that this host lacks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<MissingCapability>,
    },
    /// The request was refused. Only the ledger holds this event.
    Refused {
        /// The stable error code of the refusal.
        code: crate::ErrorCode,
        /// The message that the caller received.
        message: String,
    },
    /// The process of an attempt was started.
    Started {
        /// The attempt, from 1.
        attempt: u32,
        /// The OS pid of the leader, for people; never used as an identity.
        pid: u32,
    },
    /// The process of an attempt could not be started.
    SpawnFailed {
        /// The attempt, from 1.
        attempt: u32,
        /// The step that failed, for example `exec`.
        step: String,
        /// The kernel's error number, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        /// The error, as text.
        message: String,
    },
    /// The listening ports of a service changed.
    Ports {
        /// The attempt, from 1.
        attempt: u32,
        /// All listening ports; empty once the last one closed.
        ports: Vec<ServicePort>,
        /// The service's URL, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// A service reached a stage before ready.
    Stage {
        /// The attempt, from 1.
        attempt: u32,
        /// `Listening` or `Responding`; the other stages are reported by [`Event::Ready`].
        stage: ServiceStage,
        /// The evidence.
        sign: ReadinessSignal,
    },
    /// A service met its readiness rule, or stays alive with nothing to probe.
    Ready {
        /// The attempt, from 1.
        attempt: u32,
        /// The evidence as one sentence.
        evidence: String,
        /// The evidence, one signal each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signs: Vec<ReadinessSignal>,
        /// Whether there was nothing to probe: the service counts as running, not as ready.
        #[serde(default)]
        unprobed: bool,
        /// Warnings, for example that another port than the requested one is used.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// The health of a running service changed, before or after it was ready.
    Health {
        /// Whether it is healthy.
        ok: bool,
        /// The result of the last check, as text.
        detail: String,
    },
    /// The leader of a service exited successfully and left processes that continue the service.
    Detached {
        /// The attempt, from 1.
        attempt: u32,
        /// The leader's wait status.
        status: WaitStatus,
    },
    /// The command waits for an answer on its input.
    PromptDetected {
        /// The prompt's text.
        text: String,
        /// Whether the answer is secret and must not be shown.
        secret: bool,
    },
    /// A prompt was answered.
    PromptAnswered {
        /// The principal that answered.
        by: Principal,
    },
    /// The command went on from a prompt without input.
    PromptGone {},
    /// A question was opened, answered, cancelled, or not answered in time. Only the ledger holds
    /// this event.
    Interaction {
        /// The question's id, for example `i3`; unique until the engine ends.
        interaction: String,
        /// Its state from then on.
        state: InteractionState,
    },
    /// A context was created, ends, has ended, or could not be removed. Only the ledger holds this
    /// event.
    Context {
        /// The context.
        context: ContextId,
        /// Its state from then on.
        state: ContextStage,
        /// Why, as text; none where it was created.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A caller did something to an execution of which no other event tells who did it. Only the
    /// ledger holds this event.
    Requested {
        /// What was done.
        action: RequestedAction,
        /// Who requested it.
        by: Principal,
    },
    /// Input was written to the command; its content is not kept.
    Input {
        /// Who wrote it.
        by: Principal,
        /// The number of bytes.
        len: u64,
    },
    /// The terminal was resized.
    Resized {
        /// The new size.
        size: TermSize,
    },
    /// The process tree was frozen.
    Paused {
        /// Who requested it.
        by: Principal,
    },
    /// The process tree was thawed.
    Resumed {
        /// Who requested it.
        by: Principal,
    },
    /// The holder of the terminal's exclusive writer lease changed.
    LeaseTaken {
        /// The new holder; none when the lease was released.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Resource usage was sampled.
    Sampled {
        /// The usage so far.
        usage: Usage,
    },
    /// The changes in the overlay of a workspace were committed to the host, or discarded.
    Workspace {
        /// The outcome.
        fate: crate::overlay::OverlayOutcome,
        /// Who requested it.
        by: Principal,
    },
    /// A resource limit was reached.
    LimitHit {
        /// The limit.
        limit: LimitKind,
    },
    /// An execution uses more than a threshold, or well below it again. Only the ledger holds this
    /// event.
    Alert {
        /// What it is about.
        alert: AlertKind,
        /// Whether it was raised or resolved.
        state: AlertState,
        /// The value, in the unit of the kind.
        value: u64,
        /// The threshold, in that unit.
        threshold: u64,
    },
    /// An attempt at isolation level high made or changed autorun files in its workspace.
    Autorun {
        /// The files, and whether the search was complete.
        report: crate::autorun::AutorunReport,
    },
    /// A promised capability was lost while the execution runs, for example because the disk is
    /// full.
    Degraded {
        /// The capability that was lost.
        ability: DegradedCapability,
        /// The reason, as text.
        detail: String,
    },
    /// The execution is to be stopped.
    Stopping {
        /// Who or what decided so.
        order: StopReason,
    },
    /// The leader of an attempt ended.
    Exited {
        /// The attempt, from 1.
        attempt: u32,
        /// Its wait status.
        status: WaitStatus,
        /// The number of processes that it left and that were killed.
        #[serde(default)]
        leftovers: u32,
        /// Whether the out-of-memory killer or a memory limit killed it.
        #[serde(default)]
        out_of_memory: bool,
        /// The resource usage of the process tree.
        #[serde(default)]
        usage: Usage,
    },
    /// An attempt is stopped so that the next one starts at once.
    Restarting {
        /// The attempt that is stopped, from 1.
        attempt: u32,
        /// Who requested the restart; none where the health rule did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        /// The reason, as text.
        reason: String,
    },
    /// The next attempt is delayed.
    Backoff {
        /// The attempt that will follow, from 1.
        attempt: u32,
        /// When it will start.
        until: Timestamp,
        /// Why the wait status of the previous attempt is unknown; none where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<LostReason>,
        /// The attempts since the last one that was stable or requested; none in records of earlier
        /// versions, which counted all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tries: Option<u32>,
    },
    /// A newly started daemon found the execution alive and took it over.
    Adopted {
        /// The attempt that was found, from 1.
        attempt: u32,
    },
    /// Output in the range `from..to` was dropped.
    Trimmed {
        /// The first byte dropped.
        from: u64,
        /// The first byte kept after the gap.
        to: u64,
        /// Why it was dropped.
        reason: TrimReason,
    },
    /// The execution ended. No event follows that changes how.
    Finished {
        /// How it ended.
        ending: Termination,
    },
}

/// What a caller did to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RequestedAction {
    /// A signal was sent to the leader's process group.
    Signal {
        /// Its number.
        signal: Signal,
    },
    /// The output so far was dropped.
    ClearOutput {
        /// How many bytes.
        bytes: u64,
    },
    /// The ended execution was removed, with everything it left on disk.
    Remove,
}

/// The states of a context that the ledger records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextStage {
    /// It exists and may be used.
    Created,
    /// It accepts no more uses.
    Ending,
    /// It is over, and its files are removed.
    Ended,
    /// Its files could not be removed.
    Failed,
}

/// The beginning of the reason of a stop after which the service is started under another id.
pub const REPLACED: &str = "replaced: ";

/// Who or what decided that an execution must end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StopReason {
    /// A caller requested it.
    Requested {
        /// The caller.
        by: Principal,
        /// The reason the caller gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether the stop is immediate, without a grace period.
        force: bool,
        /// Whether SIGINT comes first: an end after it is an end by this stop.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
    },
    /// A timeout expired.
    TimedOut {
        /// The timeout.
        clock: TimeoutKind,
    },
    /// The session that owned the execution ended.
    SessionEnded,
    /// The engine shuts down, and the execution is not durable.
    Shutdown,

    /// The only request that waited for the execution was cancelled or its stream was closed.
    Cancelled,
    /// A limit that the engine enforces by accounting was exceeded.
    LimitHit {
        /// The limit.
        limit: LimitKind,
    },
}

/// What an execution can lose while it keeps running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DegradedCapability {
    /// Output is no longer written to disk.
    Journal,
    /// An enforced [`Capability`].
    Enforcement(Capability),
}

/// Why output was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrimReason {
    /// Cleared on request.
    Cleared,
    /// Dropped by the retention policy.
    Retention,
    /// The disk was full.
    DiskFull,
}
