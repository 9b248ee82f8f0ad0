//! What daemon, keeper and shims say to each other: a version byte, then one postcard value,
//! in one packet. Layout and order stand in `docs/design/002-shim-protocol.md`.

use ostler_backend::{
    ControlCommand, ExitRecord, InputProgress, LaunchIo, LaunchPlan, PinnedFile, TerminalQuery,
    Timeouts,
};
use ostler_model::termination::WaitStatus;
use ostler_model::{
    ByteString, CapabilitySet, ExecutionId, LimitKind, Limits, OrphanPolicy, TimeoutKind, Timestamp,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The first byte of every packet. Both sides are the same executable except across an
/// upgrade, where a shim of the old one meets a daemon of the new one.
pub(crate) const PROTOCOL_VERSION: u8 = 4;
/// Plans up to this size travel in the packet itself.
pub(crate) const INLINE_PLAN_BYTES: usize = 64 * 1024;

/// From the daemon to a shim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ShimRequest {
    /// Carry this out.
    Start(Box<WirePlan>),
    /// Carry out the plan in the memory file that comes with this.
    StartInMemory,
    /// An order for this attempt; one for another attempt came too late and is dropped.
    Command {
        id: ExecutionId,
        attempt: u32,
        command: ControlCommand,
    },
}

/// From a shim to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ShimEvent {
    /// The first words on `ctl.sock`: what this shim carries out.
    Hello {
        id: ExecutionId,
        attempt: u32,
        pid: u32,
        started_at: Timestamp,
    },
    /// The program runs.
    Started { pid: u32, at: Timestamp },
    /// The journal's end, while watched.
    Output { end: u64 },
    /// How much of the last input was taken.
    InputAccepted { len: u64 },
    /// The leader ended with 0, and what it left behind is kept: the attempt lives on. Said
    /// after `Hello` where it is so.
    Detached { status: WaitStatus },
    /// A clock ran out.
    TimedOut { kind: TimeoutKind },
    /// Output goes to the memory file that comes with this, from `base` on.
    JournalFailed { detail: String, base: Option<u64> },
    /// The attempt is over and its record on disk. `idle` says that the next plan may come;
    /// else the shim leaves: something could not be ended, or the record not be written.
    Exited { record: ExitRecord, idle: bool },
    /// Whether the tree stands still: the answer to a freeze, news of a thaw that a stop
    /// brought, and said after `Hello`.
    Frozen { frozen: bool },
    /// A limit was reached for the first time; after `Hello`, every one that was.
    LimitHit { limit: LimitKind },
    /// The program asked its terminal something.
    TerminalQuery { query: TerminalQuery, end: u64 },
    /// Output goes to disk again, and what was in memory is there too; but for these bytes, from
    /// and to, in the order of their offsets.
    JournalRecovered { missing: Vec<(u64, u64)> },
    /// How much of an input was taken that a daemon asked for.
    InputProgress { input: Option<InputProgress> },
}

/// From the daemon to the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ZygoteRequest {
    /// Fork so many shims.
    Fork { count: u32 },
}

/// From the keeper to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ZygoteEvent {
    /// The first words: what can be enforced here.
    Hello { capabilities: CapabilitySet },
    /// A new shim; the daemon's end of its socket comes with this.
    Shim { pid: u32 },
    /// The kernel refused a fork.
    ForkFailed { errno: i32 },
    /// A shim ended; what it left was ended too.
    ShimGone { pid: u32, swept: u32 },
}

/// [`LaunchPlan`] on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WirePlan {
    pub(crate) id: ExecutionId,
    pub(crate) attempt: u32,
    pub(crate) spec: ByteString,
    pub(crate) program: ByteString,
    pub(crate) argv: Vec<ByteString>,
    pub(crate) env: Vec<(ByteString, ByteString)>,
    pub(crate) cwd: ByteString,
    pub(crate) io: WireIo,
    pub(crate) timeouts: Timeouts,
    pub(crate) orphan_policy: OrphanPolicy,
    pub(crate) limits: WireLimits,
    /// JSON of a [`SandboxSpec`](ostler_model::SandboxSpec): it leaves fields out, which this
    /// format cannot.
    pub(crate) sandbox_json: Option<String>,
    pub(crate) redact: Vec<ByteString>,
    pub(crate) pinned_files: Vec<PinnedFile>,
    pub(crate) report_start: bool,
    pub(crate) lossless_reader: bool,
    pub(crate) min_output_offset: u64,
}

/// [`LaunchIo`] on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WireIo {
    Empty,
    Bytes(ByteString),
    Piped,
    Pty(ostler_model::TermSize),
}

/// [`Limits`] on the wire, where no field may be left out.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireLimits {
    pids: Option<u32>,
    memory_bytes: Option<u64>,
    cpu_millis: Option<u32>,
    open_files: Option<u32>,
    file_bytes: Option<u64>,
    disk_bytes: Option<u64>,
}

impl From<Limits> for WireLimits {
    fn from(limits: Limits) -> Self {
        let Limits {
            pids,
            memory_bytes,
            cpu_millis,
            open_files,
            file_bytes,
            disk_bytes,
        } = limits;
        Self {
            pids,
            memory_bytes,
            cpu_millis,
            open_files,
            file_bytes,
            disk_bytes,
        }
    }
}

impl From<WireLimits> for Limits {
    fn from(wire: WireLimits) -> Self {
        Self {
            pids: wire.pids,
            memory_bytes: wire.memory_bytes,
            cpu_millis: wire.cpu_millis,
            open_files: wire.open_files,
            file_bytes: wire.file_bytes,
            disk_bytes: wire.disk_bytes,
        }
    }
}

impl From<LaunchPlan> for WirePlan {
    fn from(plan: LaunchPlan) -> Self {
        Self {
            id: plan.id,
            attempt: plan.attempt,
            spec: ByteString::from(plan.spec),
            program: plan.program,
            argv: plan.argv,
            env: plan.env,
            cwd: plan.cwd,
            io: match plan.io {
                LaunchIo::Empty => WireIo::Empty,
                LaunchIo::Bytes(bytes) => WireIo::Bytes(ByteString::from(bytes)),
                LaunchIo::Piped => WireIo::Piped,
                LaunchIo::Pty(size) => WireIo::Pty(size),
            },
            timeouts: plan.timeouts,
            orphan_policy: plan.orphan_policy,
            limits: plan.limits.into(),
            // Were it ever unspeakable, the empty text cannot be read back: nothing is born.
            sandbox_json: plan
                .sandbox
                .map(|it| serde_json::to_string(&it).unwrap_or_default()),
            redact: plan.redact,
            pinned_files: plan.pinned_files,
            report_start: plan.report_start,
            lossless_reader: plan.lossless_reader,
            min_output_offset: plan.min_output_offset,
        }
    }
}

/// A packet that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// It begins with another version.
    #[error("protocol version {0}, expected {PROTOCOL_VERSION}")]
    Version(u8),
    /// It is empty or no message of this version.
    #[error("malformed message: {0}")]
    Malformed(#[from] postcard::Error),
}

/// A message as one packet.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, ProtocolError> {
    Ok(postcard::to_extend(message, vec![PROTOCOL_VERSION])?)
}

/// The message in a packet.
pub(crate) fn decode<T: DeserializeOwned>(packet: &[u8]) -> Result<T, ProtocolError> {
    match packet.split_first() {
        Some((&PROTOCOL_VERSION, rest)) => Ok(postcard::from_bytes(rest)?),
        Some((&other, _)) => Err(ProtocolError::Version(other)),
        None => Err(ProtocolError::Malformed(
            postcard::Error::DeserializeUnexpectedEnd,
        )),
    }
}

#[cfg(test)]
#[path = "proto_tests.rs"]
mod tests;
