//! Messages between daemon, zygote and shims: one packet each, a version byte followed by one
//! postcard value. `docs/design/002-shim-protocol.md` describes layout and order.

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
    /// Run this plan.
    Start(Box<WirePlan>),
    /// Run the plan in the memory file (memfd_create(2)) that comes with this packet.
    StartInMemory,
    /// A command for this attempt; one for another attempt came too late and is dropped.
    Command {
        id: ExecutionId,
        attempt: u32,
        command: ControlCommand,
    },
}

/// From a shim to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ShimEvent {
    /// The first message on `ctl.sock`: what this shim runs.
    Hello {
        id: ExecutionId,
        attempt: u32,
        pid: u32,
        started_at: Timestamp,
    },
    /// The program runs.
    Started { pid: u32, at: Timestamp },
    /// The end offset of the journal, while watched.
    Output { end: u64 },
    /// How many bytes of the last input were accepted.
    InputAccepted { len: u64 },
    /// The leader exited with 0 and left processes behind that are kept: the attempt continues.
    /// Repeated after `Hello` in that state.
    Detached { status: WaitStatus },
    /// A timeout expired.
    TimedOut { kind: TimeoutKind },
    /// Output goes to the memory file that comes with this packet, from offset `base` on.
    JournalFailed { detail: String, base: Option<u64> },
    /// The attempt has ended and its record is on disk. `idle` says that the shim accepts another
    /// plan; otherwise it exits, because a process could not be killed or the record not be
    /// written.
    Exited { record: ExitRecord, idle: bool },
    /// Whether the tree is frozen: the answer to a freeze, a notice that a stop thawed it, and sent
    /// after `Hello`.
    Frozen { frozen: bool },
    /// A limit was reached for the first time; after `Hello`, one message for each limit reached so
    /// far.
    LimitHit { limit: LimitKind },
    /// The program sent a query to its terminal.
    TerminalQuery { query: TerminalQuery, end: u64 },
    /// Output goes to disk again, and what was in memory has been written, except these ranges,
    /// each as start and end, in the order of offsets.
    JournalRecovered { missing: Vec<(u64, u64)> },
    /// The progress of the input that a daemon requested.
    InputProgress { input: Option<InputProgress> },
}

/// From the daemon to the zygote.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ZygoteRequest {
    /// Fork this many shims.
    Fork { count: u32 },
}

/// From the zygote to the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ZygoteEvent {
    /// The first message: what can be enforced here.
    Hello { capabilities: CapabilitySet },
    /// A new shim; the daemon's end of its socket comes with this packet.
    Shim { pid: u32 },
    /// The kernel refused a fork.
    ForkFailed { errno: i32 },
    /// A shim ended; `swept` counts the processes it left, which were killed.
    ShimGone { pid: u32, swept: u32 },
}

/// The wire form of [`LaunchPlan`].
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
    /// JSON of a [`SandboxSpec`](ostler_model::SandboxSpec): serde leaves out its unset fields,
    /// which postcard cannot read back.
    pub(crate) sandbox_json: Option<String>,
    pub(crate) redact: Vec<ByteString>,
    pub(crate) pinned_files: Vec<PinnedFile>,
    pub(crate) report_start: bool,
    pub(crate) lossless_reader: bool,
    pub(crate) min_output_offset: u64,
}

/// The wire form of [`LaunchIo`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WireIo {
    Empty,
    Bytes(ByteString),
    Piped,
    Pty(ostler_model::TermSize),
}

/// The wire form of [`Limits`], in which no field may be left out.
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
            // Should it ever fail to serialize, the empty text cannot be read back: nothing is
            // spawned.
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

/// A packet that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// It has another protocol version.
    #[error("protocol version {0}, expected {PROTOCOL_VERSION}")]
    Version(u8),
    /// It is empty or no message of this version.
    #[error("malformed message: {0}")]
    Malformed(#[from] postcard::Error),
}

/// Encodes a message as one packet.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, ProtocolError> {
    Ok(postcard::to_extend(message, vec![PROTOCOL_VERSION])?)
}

/// Decodes the message of a packet.
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
