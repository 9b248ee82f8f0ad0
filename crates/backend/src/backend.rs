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
    /// Its name in specs.
    fn name(&self) -> BackendName;

    /// What can be enforced here, probed once when the place was opened.
    fn capabilities(&self) -> CapabilitySet;

    /// Starts one attempt. Returns as soon as the birth is under way; whether the program
    /// ran is a [`ProcessEvent`].
    ///
    /// # Errors
    /// When nobody could be found to give birth; then nothing was started.
    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>>;

    /// What became of an execution that an earlier engine started here.
    /// Members of an orphaned tree are ended before this returns.
    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome>;

    /// Looks at a running tree: its members and what they use, and what else was asked for.
    /// An ended execution has no members.
    ///
    /// # Errors
    /// When nothing is known of it here.
    fn snapshot(
        &self,
        id: ExecutionId,
        request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>>;

    /// What this confinement needs and the file systems it names cannot do (idmapped mounts,
    /// overlays, Landlock), each with its reason; empty where nothing is missing. Probed once
    /// per file system.
    fn probe_filesystems<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Vec<MissingCapability>> {
        let _unused = spec;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Opens a connection to a port of a running tree, from within its network namespace where
    /// it has one of its own: what a probe talks to.
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

    /// Who listens on these ports of the host, whosever they are; ports nobody holds are left
    /// out.
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
    /// When it has none, or the order cannot be carried out; then the host is unchanged
    /// except where the error says so.
    fn overlay(
        &self,
        id: ExecutionId,
        request: OverlayRequest,
    ) -> BoxFuture<'_, Result<OverlayResponse, OverlayRequestError>> {
        let _unused = request;
        Box::pin(std::future::ready(Err(OverlayRequestError::None(id))))
    }

    /// Ends what belongs to this engine and not to an execution: idle shims, the keeper.
    /// Running executions go on.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The largest plan: arguments, environment, input and spec together, in bytes.
pub const PLAN_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// One attempt, resolved to what the kernel needs.
#[derive(Clone)]
pub struct LaunchPlan {
    /// Whose attempt.
    pub id: ExecutionId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The [`Spec`](ostler_model::Spec) as JSON, written verbatim before anything runs.
    pub spec: Vec<u8>,
    /// The program's absolute path.
    pub program: ByteString,
    /// The argument vector, its zeroth element as the caller wrote it.
    pub argv: Vec<ByteString>,
    /// The whole environment; the place adds `OSTLER_EXECUTION`.
    pub env: Vec<(ByteString, ByteString)>,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// Standard input, or a terminal for all three.
    pub io: LaunchIo,
    /// Deadlines that the place keeps even when no engine lives.
    pub timeouts: Timeouts,
    /// What becomes of processes the leader leaves behind.
    pub orphan_policy: OrphanPolicy,
    /// Limits to apply to the tree.
    pub limits: Limits,
    /// The walls of level high.
    pub sandbox: Option<SandboxSpec>,
    /// Values never to be journalled; each occurrence in output is replaced.
    pub redact: Vec<ByteString>,
    /// Files that must be what they were, the program among them; otherwise nothing is born.
    /// None of them where nothing is to be compared.
    pub pinned_files: Vec<PinnedFile>,
    /// Whether [`ProcessEvent::Started`] is wanted at once; without it, it comes only from what does
    /// not end within milliseconds, and short commands save a wake-up.
    pub report_start: bool,
    /// Whether a reader that must miss nothing is expected from the first byte on: with a full
    /// disk the command then waits until [`ControlCommand::Retain`] tells how far that reader is. Without
    /// it, a full disk stops no command.
    pub lossless_reader: bool,
    /// Where its output begins at the earliest, for a later attempt: the highest offset anybody
    /// was told of. Output of an earlier one may have been in memory only.
    pub min_output_offset: u64,
}

impl fmt::Debug for LaunchPlan {
    /// Without environment, input and secrets: plans pass through logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchPlan")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// A regular file as it was when its content was read: whatever writes to it changes a time,
/// whatever takes its place is another file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFile {
    /// Its absolute path; symbolic links are followed.
    pub path: ByteString,
    /// The number of its file system.
    pub dev: u64,
    /// Its number there.
    pub ino: u64,
    /// Its bytes.
    pub size: u64,
    /// When it was written last, in seconds and nanoseconds since the Unix epoch.
    pub modified: (i64, i64),
    /// When it was written or its inode changed last.
    pub changed: (i64, i64),
}

/// How bytes go in and out of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchIo {
    /// Pipes for output and errors; standard input at end of file.
    Empty,
    /// Pipes; these bytes, then end of file.
    Bytes(Vec<u8>),
    /// Pipes, standard input among them, open until [`ControlCommand::CloseInput`].
    Piped,
    /// A terminal.
    Pty(TermSize),
}

/// Deadlines of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// From start to the kill ladder.
    pub wall: Option<Duration>,
    /// Without output, to the kill ladder.
    pub idle: Option<Duration>,
    /// Between the polite request and the kill.
    pub grace: Duration,
}

/// A birth under way.
#[derive(Debug)]
pub struct SpawnHandle {
    /// For orders.
    pub control: Arc<dyn ProcessControl>,
    /// What becomes of it; closed after [`ProcessEvent::Exited`] or [`ProcessEvent::Lost`].
    pub events: mpsc::Receiver<ProcessEvent>,
}

/// Carries orders to a running tree.
pub trait ProcessControl: Send + Sync + fmt::Debug {
    /// Hands over one order. Success means it was delivered; its effect is a report.
    ///
    /// # Errors
    /// When the tree is gone or does not take orders in time; never blocks beyond
    /// [`COMMAND_TIMEOUT_MS`].
    fn send(&self, command: ControlCommand) -> BoxFuture<'_, Result<(), ControlError>>;
}

/// How long handing over an order may take, in milliseconds.
pub const COMMAND_TIMEOUT_MS: u64 = 2_000;

/// What becomes of a birth.
#[derive(Debug)]
pub enum ProcessEvent {
    /// The program runs.
    Started {
        /// Its OS pid.
        pid: u32,
        /// When.
        at: Timestamp,
    },
    /// Output up to this offset is on disk (sent while watched, coalesced).
    Output {
        /// The journal's end.
        end: u64,
    },
    /// Input was taken up to the given amount.
    InputAccepted {
        /// Bytes of the last order that were taken; fewer than given when the command does
        /// not read.
        len: u64,
    },
    /// What is known of an input that an [`ControlCommand::InputOnce`] without bytes asked for; none where
    /// nothing of it was taken.
    InputProgress(Option<InputProgress>),
    /// The program asked its terminal something that a terminal answers by itself.
    TerminalQuery {
        /// What.
        query: TerminalQuery,
        /// The journal's end at the question.
        end: u64,
    },
    /// The answer to [`ControlCommand::Freeze`].
    Frozen {
        /// Whether the tree stands still now.
        frozen: bool,
    },
    /// A limit of the tree was reached for the first time; it runs on.
    LimitHit {
        /// Which.
        limit: LimitKind,
    },
    /// The leader ended with 0 and left processes behind, which are kept
    /// ([`OrphanPolicy::Keep`]): they go on in its place, and the attempt with them. Told again to
    /// an engine that found it running.
    Detached {
        /// How the leader ended.
        status: WaitStatus,
    },
    /// A clock of the plan ran out; the ladder began.
    TimedOut {
        /// Which.
        kind: TimeoutKind,
    },
    /// The disk refuses the journal; output goes to this memory instead, until
    /// [`ProcessEvent::JournalRecovered`].
    JournalFailed {
        /// For people.
        detail: String,
        /// A memory file read like a segment that begins at `base`.
        memory: Option<(u64, OwnedFd)>,
    },
    /// Output goes to disk again, and all that was in memory is there too.
    JournalRecovered {
        /// What is gone nevertheless, from and to, in the order of offsets.
        missing: Vec<(u64, u64)>,
    },
    /// The attempt is over, and on disk.
    Exited(ExitRecord),
    /// The shim is gone without a record; its tree was swept.
    Lost,
}

/// What programs ask their terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TerminalQuery {
    /// Whether it is well: DSR 5.
    Status,
    /// Where the cursor stands: DSR 6, CPR.
    Cursor,
    /// What it can do: DA1, DECID.
    Attributes,
}

/// What was found of an earlier engine's execution.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// It runs; its reports continue here. The first [`ProcessEvent::Frozen`] says unasked whether it
    /// stands still, and limits that were reached are told again.
    Running {
        /// The attempt that runs.
        attempt: u32,
        /// The leader's OS pid.
        pid: u32,
        /// When it started.
        started_at: Timestamp,
        /// As from a birth.
        handle: SpawnHandle,
    },
    /// It ended and left its record.
    Exited(ExitRecord),
    /// Nobody can say how it ended.
    Lost {
        /// Why.
        reason: ostler_model::LostReason,
        /// The newest attempt known, 0 if none.
        attempt: u32,
        /// Members of its tree that were found and ended.
        swept: u32,
    },
    /// It may run and cannot be asked: nothing was done to it.
    Unreachable(SpawnError),
}

/// Nobody could be found to give birth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// The keeper could not be started or does not answer.
    #[error("the keeper does not answer: {0}")]
    Zygote(String),
    /// The plan is larger than a message may be.
    #[error("arguments, environment and input are {bytes} bytes, more than {limit}")]
    PlanTooLarge {
        /// What was asked.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The execution's directory could not be made.
    #[error("the state directory cannot be written: {0}")]
    Storage(String),
    /// Each execution takes one of the files that the daemon may have open, and all but those
    /// kept for requests are in use.
    #[error(
        "the daemon may have {limit} files open (RLIMIT_NOFILE): {executions} executions take one \
         each, {reserved} are kept for requests"
    )]
    OpenFiles {
        /// The limit, soft and hard.
        limit: u64,
        /// What is kept.
        reserved: u64,
        /// Executions that run.
        executions: usize,
    },
}

/// An order that could not be handed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The tree is gone.
    #[error("the process has ended")]
    Ended,
    /// The shim did not take the order in time.
    #[error("the shim did not take the order within {COMMAND_TIMEOUT_MS} ms")]
    Busy,
    /// There is no such channel, for example input to a command without one.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// An order about a workspace that could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayRequestError {
    /// It wrote to the workspace itself, or had none.
    #[error("{} has no overlay", .0.short())]
    None(ExecutionId),
    /// It runs, and may write more.
    #[error("{} still runs; its changes can be committed when it has ended", .0.short())]
    Running(ExecutionId),
    /// They were committed or discarded before.
    #[error("the changes of {} were {} already", id.short(), if *committed { "committed" } else { "discarded" })]
    AlreadyResolved {
        /// Whose.
        id: ExecutionId,
        /// Whether they are on the host.
        committed: bool,
    },
    /// A file could not be read or written.
    #[error("{what} {}: {reason}", path.to_string_lossy())]
    Storage {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: ByteString,
        /// What the system said.
        reason: String,
    },
}

/// A tree that cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// No record of its birth can be read on this machine.
    #[error("nothing is known here of {0}")]
    Unknown(ExecutionId),
}
