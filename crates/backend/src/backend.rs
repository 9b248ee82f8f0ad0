//! The trait [`Backend`] and its types. The contract is in the documentation of the crate.
//!
//! A [`Backend`] turns a [`LaunchPlan`] into a running process tree and reports its
//! [`ProcessEvent`]s; [`ProcessControl`] carries [`ControlCommand`]s the other way.

use std::fmt;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use ostler_model::{
    BackendName, ByteString, CapabilitySet, ContainerSpec, DiskEnforcement, ExecutionId,
    MissingCapability, OverlayRequest, OverlayResponse, SandboxSpec, SnapshotRequest, Timestamp,
    TreeSnapshot,
};
use tokio::sync::mpsc;

use crate::launch_plan::LaunchPlan;
use crate::usage_reading::UsageReading;
pub use ostler_model::control::{ControlCommand, INPUT_CHUNK_BYTES};
pub use ostler_model::exit_record::{
    EXIT_RECORD_VERSION, ExitRecord, KillReason, LeaderOutcome, STEP_OPEN_FILES, STEP_STORAGE,
    STEP_TERMINAL,
};
pub use ostler_model::process_event::{ProcessEvent, TerminalQuery};

/// A boxed future, so that the traits here stay usable as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts, supervises and recovers process trees.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Its name in specifications.
    fn name(&self) -> BackendName;

    /// What can be enforced here, probed once when the backend was opened.
    fn capabilities(&self) -> CapabilitySet;

    /// What containers enforce here; none where this backend runs no containers.
    fn container_capabilities(&self) -> Option<CapabilitySet> {
        None
    }

    /// How containers' limits on the disk are enforced; none where no engine was reached.
    fn container_disk(&self) -> Option<DiskEnforcement> {
        None
    }

    /// Checks that a container of this specification can be made: that an engine answers, that the
    /// image is on this machine and the network exists. Changes nothing.
    ///
    /// # Errors
    /// The first of these that does not hold.
    fn check_container<'a>(
        &'a self,
        spec: &'a ContainerSpec,
    ) -> BoxFuture<'a, Result<(), ContainerError>> {
        let _unused = spec;
        Box::pin(std::future::ready(Err(ContainerError::Unsupported)))
    }

    /// Starts one attempt. Returns as soon as the spawn is under way; whether the program ran is
    /// reported by a [`ProcessEvent`].
    ///
    /// # Errors
    /// When no shim is available; then nothing was started.
    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>>;

    /// The outcome of an execution that an earlier engine started here. Members of an orphaned tree
    /// are ended before this returns.
    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome>;

    /// Inspects a running tree: its members, their resource usage, and what else was requested. An
    /// ended execution has no members.
    ///
    /// # Errors
    /// When the execution is not known here.
    fn snapshot(
        &self,
        id: ExecutionId,
        request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>>;

    /// Reads what running trees use, in one pass over all of them; in the order of `ids`, none for
    /// one that has ended, is not known here, or cannot be measured.
    fn usage<'a>(&'a self, ids: &'a [ExecutionId]) -> BoxFuture<'a, Vec<Option<UsageReading>>> {
        Box::pin(std::future::ready(vec![None; ids.len()]))
    }

    /// The allocated bytes of everything below a directory, on its file system; none where they
    /// cannot be counted. Walks the directory.
    fn directory_bytes<'a>(&'a self, _directory: &'a Path) -> BoxFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(None))
    }

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

    /// Lists, shows, commits or discards the changes of an execution in its overlay. `has_ended`
    /// says that no process of it will come any more: then directories that it closed may be opened.
    ///
    /// # Errors
    /// When it has no overlay, or the request cannot be performed; then the host is unchanged
    /// except where the error says otherwise.
    fn overlay(
        &self,
        id: ExecutionId,
        request: OverlayRequest,
        has_ended: bool,
    ) -> BoxFuture<'_, Result<OverlayResponse, OverlayRequestError>> {
        let _unused = (request, has_ended);
        Box::pin(std::future::ready(Err(OverlayRequestError::None(id))))
    }

    /// Ends what belongs to this engine rather than to an execution: idle shims and the zygote.
    /// Running executions continue.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A spawn under way.
#[derive(Debug)]
pub struct SpawnHandle {
    /// Accepts commands for the tree.
    pub control: Arc<dyn ProcessControl>,
    /// Reports of the tree; closed after [`ProcessEvent::Exited`] or [`ProcessEvent::Lost`].
    pub events: mpsc::Receiver<ReceivedEvent>,
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

/// An event of an attempt, as the engine receives it.
#[derive(Debug)]
pub struct ReceivedEvent {
    /// The event.
    pub event: ProcessEvent,
    /// With [`ProcessEvent::JournalFailed`], the memory file (memfd_create(2)) that output goes to;
    /// it is read like a segment that begins at the event's `base`.
    pub memory: Option<OwnedFd>,
}

impl From<ProcessEvent> for ReceivedEvent {
    fn from(event: ProcessEvent) -> Self {
        Self {
            event,
            memory: None,
        }
    }
}

/// The outcome of an execution of an earlier engine.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// It runs; its events continue here. The first [`ProcessEvent::Frozen`] states without a
    /// request whether it is frozen; limits that were reached and capabilities that were lost are
    /// reported again.
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
    Exited(Box<ExitRecord>),
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
    /// The container could not be had.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The execution's directory could not be created.
    #[error("the state directory cannot be written: {0}")]
    Storage(String),
    /// Each execution takes one of the daemon's file descriptors, and all but those reserved for
    /// requests are in use.
    #[error(
        "the daemon may have {limit} files open (RLIMIT_NOFILE): executions take one each, and all \
         but the {reserved} kept for requests are in use"
    )]
    OpenFiles {
        /// The value of `RLIMIT_NOFILE`.
        limit: u64,
        /// How many are reserved.
        reserved: u64,
    },
}

/// A container that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// This backend runs no containers.
    #[error("containers are not supported here")]
    Unsupported,
    /// No container engine answers.
    #[error("no container engine answers: tried {}", .tried.join(", "))]
    NoEngine {
        /// Each socket that was tried, with its problem: `/run/docker.sock (no such file)`.
        tried: Vec<String>,
    },
    /// The engine stopped answering, or did not answer in time.
    #[error("the container engine at {socket} does not answer: {reason}")]
    EngineUnresponsive {
        /// The engine's socket.
        socket: String,
        /// The problem.
        reason: String,
    },
    /// The image is not on this machine.
    #[error("the image '{image}' is not on this machine, and nothing is pulled by a start")]
    NoImage {
        /// The image as it was asked for.
        image: String,
    },
    /// The network does not exist.
    #[error("the network '{network}' does not exist in the container engine")]
    NoNetwork {
        /// Its name.
        network: String,
    },
    /// The engine refused to make or start the container.
    #[error("the container engine refused: {0}")]
    Refused(String),
    /// The container was made, but its init did not become reachable.
    #[error("the container did not start: {0}")]
    NotStarted(String),
    /// The engine's disk is full.
    #[error("the container engine has no space left: {0}")]
    EngineStorage(String),
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
