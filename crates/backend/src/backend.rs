//! The trait [`Backend`] and its types. The contract is in the documentation of the crate.
//!
//! A [`Backend`] turns a [`LaunchPlan`] into a running process tree and reports what becomes of it in
//! [`ProcessEvent`]s; [`ProcessControl`] carries [`ControlCommand`]s the other way.

use std::fmt;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::termination::WaitStatus;
use ostler_model::{
    BackendName, ByteString, CapabilitySet, ExecutionId, LimitKind, Limits, MissingCapability,
    OrphanPolicy, OverlayRequest, OverlayResponse, SandboxSpec, SnapshotRequest, TermSize,
    TimeoutKind, Timestamp, TreeSnapshot,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use ostler_model::control::InputProgress;
pub use ostler_model::control::{ControlCommand, INPUT_CHUNK_BYTES};
pub use ostler_model::exit_record::{
    EXIT_RECORD_VERSION, ExitRecord, KillReason, LeaderOutcome, STEP_OPEN_FILES, STEP_STORAGE,
    STEP_TERMINAL,
};

/// A boxed future, so that the traits here stay usable as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts, supervises and recovers process trees.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Its name in specifications.
    fn name(&self) -> BackendName;

    /// What can be enforced here, probed once when the backend was opened.
    fn capabilities(&self) -> CapabilitySet;

    /// Starts one attempt. Returns as soon as the spawn is under way; whether the program ran is
    /// reported by a [`ProcessEvent`].
    ///
    /// # Errors
    /// When no shim is available; then nothing was started.
    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>>;

    /// What became of an execution that an earlier engine started here.
    /// Members of an orphaned tree are ended before this returns.
    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome>;

    /// Inspects a running tree: its members, what they use, and what else was requested. An ended
    /// execution has no members.
    ///
    /// # Errors
    /// When the execution is not known here.
    fn snapshot(
        &self,
        id: ExecutionId,
        request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>>;

    /// The features this sandbox needs that the file systems it names do not support (idmapped
    /// mounts, overlays, Landlock), each with its reason; empty where nothing is missing. Probed
    /// once per file system.
    fn probe_filesystems<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Vec<MissingCapability>> {
        let _unused = spec;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Opens a connection to a port of a running tree, from within its network namespace where it
    /// has one of its own. Readiness and health probes use it.
    ///
    /// # Errors
    /// As connect(2); `NotFound` where the tree is not known here.
    fn connect(
        &self,
        id: ExecutionId,
        address: std::net::SocketAddr,
    ) -> BoxFuture<'_, std::io::Result<OwnedFd>> {
        let _unused = (id, address);
        let error = std::io::Error::from(std::io::ErrorKind::Unsupported);
        Box::pin(std::future::ready(Err(error)))
    }

    /// The processes that listen on these ports of the host, of any user; ports without a listener
    /// are left out.
    fn port_holders<'a>(
        &'a self,
        ports: &'a [u16],
    ) -> BoxFuture<'a, Vec<ostler_model::PortHolder>> {
        let _unused = ports;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Lists, shows, commits or discards what an execution wrote to its overlay.
    ///
    /// # Errors
    /// When it has no overlay, or the request cannot be carried out; then the host is unchanged
    /// except where the error says otherwise.
    fn overlay(
        &self,
        id: ExecutionId,
        request: OverlayRequest,
    ) -> BoxFuture<'_, Result<OverlayResponse, OverlayRequestError>> {
        let _unused = request;
        Box::pin(std::future::ready(Err(OverlayRequestError::None(id))))
    }

    /// Ends what belongs to this engine rather than to an execution: idle shims and the zygote.
    /// Running executions continue.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The largest plan: arguments, environment, input and spec together, in bytes.
pub const PLAN_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// One attempt, resolved to what the kernel needs.
#[derive(Clone)]
pub struct LaunchPlan {
    /// The execution.
    pub id: ExecutionId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The [`Spec`](ostler_model::Spec) as JSON, written verbatim before anything runs.
    pub spec: Vec<u8>,
    /// The program's absolute path.
    pub program: ByteString,
    /// The argument vector, its zeroth element as the caller wrote it.
    pub argv: Vec<ByteString>,
    /// The whole environment; the backend adds `OSTLER_EXECUTION`.
    pub env: Vec<(ByteString, ByteString)>,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// Standard input, or a terminal for all three.
    pub io: LaunchIo,
    /// Deadlines that the backend enforces even when no engine runs.
    pub timeouts: Timeouts,
    /// What becomes of processes the leader leaves behind.
    pub orphan_policy: OrphanPolicy,
    /// Limits to apply to the tree.
    pub limits: Limits,
    /// The isolation of level high.
    pub sandbox: Option<SandboxSpec>,
    /// Secret values, which the journal never contains; each occurrence in output is replaced.
    pub redact: Vec<ByteString>,
    /// Files that must be unchanged, the program among them; otherwise nothing is spawned. Empty
    /// where nothing is to be compared.
    pub pinned_files: Vec<PinnedFile>,
    /// Whether [`ProcessEvent::Started`] is wanted at once. Without it, only a program that does
    /// not end within milliseconds reports its start, which saves short commands a wake-up.
    pub report_start: bool,
    /// Whether a reader that must receive every byte is expected from the first byte on: with a
    /// full disk the command then waits until [`ControlCommand::Retain`] gives the position of that
    /// reader. Without it, a full disk stops no command.
    pub lossless_reader: bool,
    /// The lowest offset at which the output of a later attempt may begin: the highest offset that
    /// any reader was given. Output of an earlier attempt may have been in memory only.
    pub min_output_offset: u64,
}

impl fmt::Debug for LaunchPlan {
    /// Leaves out environment, input and secrets: plans are logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchPlan")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// The identity of a regular file when its content was read: any write changes a timestamp, and a
/// replacement has another inode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFile {
    /// Its absolute path; symbolic links are followed.
    pub path: ByteString,
    /// The device number of its file system (`st_dev`).
    pub dev: u64,
    /// Its inode number (`st_ino`).
    pub ino: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was last modified (`st_mtim`), in seconds and nanoseconds since the Unix
    /// epoch.
    pub modified: (i64, i64),
    /// When its content or inode last changed (`st_ctim`), in the same units.
    pub changed: (i64, i64),
}

/// How input reaches an attempt and output leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchIo {
    /// Pipes for standard output and error; standard input at end of file.
    Empty,
    /// Pipes; standard input delivers these bytes, then end of file.
    Bytes(Vec<u8>),
    /// Pipes, standard input among them, which stays open until [`ControlCommand::CloseInput`].
    Piped,
    /// A terminal of this size for all three.
    Pty(TermSize),
}

/// Deadlines of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// From the start of the program to the kill escalation.
    pub wall: Option<Duration>,
    /// From the last output to the kill escalation.
    pub idle: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
}

/// A spawn under way.
#[derive(Debug)]
pub struct SpawnHandle {
    /// Accepts commands for the tree.
    pub control: Arc<dyn ProcessControl>,
    /// Reports of the tree; closed after [`ProcessEvent::Exited`] or [`ProcessEvent::Lost`].
    pub events: mpsc::Receiver<ProcessEvent>,
}

/// Sends commands to a running tree.
pub trait ProcessControl: Send + Sync + fmt::Debug {
    /// Sends one command. Success means it was delivered; its effect is reported by a
    /// [`ProcessEvent`].
    ///
    /// # Errors
    /// When the tree is gone or does not accept commands in time; never blocks beyond
    /// [`COMMAND_TIMEOUT_MS`].
    fn send(&self, command: ControlCommand) -> BoxFuture<'_, Result<(), ControlError>>;
}

/// How long sending a command may take, in milliseconds.
pub const COMMAND_TIMEOUT_MS: u64 = 2_000;

/// What becomes of a birth.
#[derive(Debug)]
pub enum ProcessEvent {
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
    /// The progress of an input that an [`ControlCommand::InputOnce`] without bytes requested; none
    /// where nothing of it was accepted.
    InputProgress(Option<InputProgress>),
    /// The program sent a query that terminals answer by themselves.
    TerminalQuery {
        /// The kind of query.
        query: TerminalQuery,
        /// The end offset of the journal right after the query.
        end: u64,
    },
    /// The answer to [`ControlCommand::Freeze`].
    Frozen {
        /// Whether the tree is frozen now.
        frozen: bool,
    },
    /// A limit of the tree was reached for the first time; it runs on.
    LimitHit {
        /// The limit.
        limit: LimitKind,
    },
    /// The leader exited with 0 and left processes behind that are kept ([`OrphanPolicy::Keep`]):
    /// they continue the attempt. Repeated to an engine that recovers the execution.
    Detached {
        /// How the leader ended.
        status: WaitStatus,
    },
    /// A timeout of the plan expired; the kill escalation began.
    TimedOut {
        /// The timeout.
        kind: TimeoutKind,
    },
    /// The journal cannot be written; output goes to this memory instead, until
    /// [`ProcessEvent::JournalRecovered`].
    JournalFailed {
        /// The reason as text.
        detail: String,
        /// The memory file and its offset `base`; it is read like a segment that begins there.
        memory: Option<(u64, OwnedFd)>,
    },
    /// Output goes to disk again, and what was in memory has been written too.
    JournalRecovered {
        /// Ranges that are lost nevertheless, each as start and end, in the order of offsets.
        missing: Vec<(u64, u64)>,
    },
    /// The attempt has ended and its record is on disk.
    Exited(ExitRecord),
    /// The shim ended without leaving a record; its tree was killed.
    Lost,
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

/// What was found of an earlier engine's execution.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// It runs; its events continue here. The first [`ProcessEvent::Frozen`] states without a
    /// request whether it is frozen, and limits that were reached are reported again.
    Running {
        /// The attempt that runs.
        attempt: u32,
        /// The leader's OS pid.
        pid: u32,
        /// When it started.
        started_at: Timestamp,
        /// The handle, as a spawn returns it.
        handle: SpawnHandle,
    },
    /// It ended and left its exit record.
    Exited(ExitRecord),
    /// How it ended is not known.
    Lost {
        /// Why that is not known.
        reason: ostler_model::LostReason,
        /// The newest attempt known, 0 if none.
        attempt: u32,
        /// How many members of its tree were found and killed.
        swept: u32,
    },
    /// It may be running, but its shim cannot be contacted: nothing was done to it.
    Unreachable(SpawnError),
}

/// No attempt could be spawned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// The zygote could not be started or does not answer.
    #[error("the keeper does not answer: {0}")]
    Zygote(String),
    /// The plan is larger than the protocol allows.
    #[error("arguments, environment and input are {bytes} bytes, more than {limit}")]
    PlanTooLarge {
        /// The size of the plan.
        bytes: u64,
        /// The largest size allowed.
        limit: u64,
    },
    /// The execution's directory could not be created.
    #[error("the state directory cannot be written: {0}")]
    Storage(String),
    /// Each execution takes one of the daemon's file descriptors, and all but those reserved for
    /// requests are in use.
    #[error(
        "the daemon may have {limit} files open (RLIMIT_NOFILE): {executions} executions take one \
         each, {reserved} are kept for requests"
    )]
    OpenFiles {
        /// The value of `RLIMIT_NOFILE`.
        limit: u64,
        /// How many are reserved.
        reserved: u64,
        /// How many executions run.
        executions: usize,
    },
}

/// A command that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The tree has ended.
    #[error("the process has ended")]
    Ended,
    /// The shim did not accept the command in time.
    #[error("the shim did not take the order within {COMMAND_TIMEOUT_MS} ms")]
    Busy,
    /// The attempt has no such channel, for example input to a command without one.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// An overlay request that could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayRequestError {
    /// The execution wrote to the workspace itself, or had none.
    #[error("{} has no overlay", .0.short())]
    None(ExecutionId),
    /// The execution runs, and may write more.
    #[error("{} still runs; its changes can be committed when it has ended", .0.short())]
    Running(ExecutionId),
    /// The changes were already committed or discarded.
    #[error("the changes of {} were {} already", id.short(), if *committed { "committed" } else { "discarded" })]
    AlreadyResolved {
        /// The execution.
        id: ExecutionId,
        /// Whether the changes are on the host.
        committed: bool,
    },
    /// A file could not be read or written.
    #[error("{what} {}: {reason}", path.to_string_lossy())]
    Storage {
        /// The operation.
        what: &'static str,
        /// The path it was applied to.
        path: ByteString,
        /// The system's error text.
        reason: String,
    },
}

/// A tree that cannot be inspected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// No record of its start can be read on this machine.
    #[error("nothing is known here of {0}")]
    Unknown(ExecutionId),
}
