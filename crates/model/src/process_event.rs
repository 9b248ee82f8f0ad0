//! What is reported of a running attempt, from the process that supervises it to the supervisor
//! that decides.

use serde::{Deserialize, Serialize};

use crate::control::InputProgress;
use crate::termination::WaitStatus;
use crate::{ExecutionId, ExitRecord, LimitKind, MissingCapability, TimeoutKind, Timestamp};

/// An event of an attempt.
///
/// A shim sends it in a format without names (postcard), also to a daemon of a later version: the
/// order of variants and fields is the format, and a new variant comes last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessEvent {
    /// The first event of an attempt that an earlier engine started: what runs. The backend answers
    /// recovery with it and passes it on to nobody.
    Hello {
        /// The execution.
        id: ExecutionId,
        /// The attempt.
        attempt: u32,
        /// The leader's OS pid.
        pid: u32,
        /// The time of execve(2).
        started_at: Timestamp,
    },
    /// The program runs.
    Started {
        /// Its OS pid.
        pid: u32,
        /// The time of execve(2).
        at: Timestamp,
    },
    /// Output up to this offset is on disk (sent while watched, coalesced).
    Output {
        /// The end offset of the journal.
        end: u64,
    },
    /// Input was accepted.
    InputAccepted {
        /// How many bytes of the last command were accepted; fewer than sent when the command does
        /// not read.
        len: u64,
    },
    /// The leader exited with 0 and left processes that are kept
    /// ([`OrphanPolicy::Keep`](crate::OrphanPolicy::Keep)): they continue the attempt. Repeated to
    /// an engine that recovers the execution.
    Detached {
        /// How the leader ended.
        status: WaitStatus,
    },
    /// A timeout of the plan expired; the kill escalation began.
    TimedOut {
        /// The timeout.
        kind: TimeoutKind,
    },
    /// The journal cannot be written; output goes to memory instead, until
    /// [`ProcessEvent::JournalRecovered`].
    JournalFailed {
        /// The reason as text.
        detail: String,
        /// The offset at which the memory begins; none where there is no memory either.
        base: Option<u64>,
    },
    /// The attempt has ended and its record is on disk.
    Exited {
        /// The record.
        record: Box<ExitRecord>,
        /// Whether the process that supervised it accepts another plan. Otherwise it exits,
        /// because a process could not be killed or the record not be written.
        idle: bool,
    },
    /// Whether the tree is frozen: the answer to
    /// [`ControlCommand::Freeze`](crate::ControlCommand::Freeze), a notice that a stop thawed it,
    /// and sent to an engine that recovers the execution.
    Frozen {
        /// Whether it is frozen now.
        frozen: bool,
    },
    /// A limit of the tree was reached for the first time; it runs on. Repeated, one for each limit
    /// reached, to an engine that recovers the execution.
    LimitHit {
        /// The limit.
        limit: LimitKind,
    },
    /// The program sent a query that terminals answer by themselves.
    TerminalQuery {
        /// The kind of query.
        query: TerminalQuery,
        /// The end offset of the journal right after the query.
        end: u64,
    },
    /// Output is written to disk again, including the output that was in memory.
    JournalRecovered {
        /// Ranges that are lost nevertheless, each as start and end, in the order of offsets.
        missing: Vec<(u64, u64)>,
    },
    /// The progress of an input that a
    /// [`ControlCommand::InputOnce`](crate::ControlCommand::InputOnce) without bytes requested;
    /// none where nothing of it was accepted.
    InputProgress {
        /// The progress.
        input: Option<InputProgress>,
    },
    /// The process that supervised the attempt ended without leaving a record; its tree was killed.
    Lost,
    /// An enforced capability was lost; the tree runs on without it. Repeated to an engine that
    /// recovers the execution. Comes after [`ProcessEvent::Started`].
    Degraded {
        /// The capability, and why it was lost.
        lost: MissingCapability,
    },
}

/// A query a program sends to its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TerminalQuery {
    /// The device status: DSR 5.
    Status,
    /// The cursor position: DSR 6, CPR.
    Cursor,
    /// The device attributes: DA1, DECID.
    Attributes,
}
