//! The [`enum@Error`] of the engine: every way a request can fail, with its [`ErrorCode`].

use std::path::{Path, PathBuf};

use ostler_backend::{
    ContainerError, ControlError, STEP_OPEN_FILES, STEP_STORAGE, STEP_TERMINAL, SpawnError,
};
use ostler_journal::WriteError;
use ostler_model::{ErrorCode, ExecutionId};
use thiserror::Error;

use super::{
    AllowListError, ArgumentError, ContextError, InteractionError, ProgramError, ProjectError,
    QuotaExceeded, ServiceError, storage_hint,
};
use crate::disk_space;
use crate::settings::ApprovalPath;

/// A request that could not be fulfilled. A command that fails is not among these.
#[derive(Debug, Error)]
pub enum Error {
    /// Unknown, or of another owner; the error is the same, so that foreign ids cannot be probed.
    #[error("Process not found or access denied")]
    NotFound,
    /// As [`Error::NotFound`], of a terminal session.
    #[error("Session not found or access denied")]
    SessionNotFound,
    /// An argument of the request is invalid.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The program cannot be found or executed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The allow list does not let it run.
    #[error(transparent)]
    NotAllowed(#[from] AllowListError),
    /// A container that cannot be had here; nothing was started.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// An isolation level, of which something is not available here.
    #[error(transparent)]
    UnmetIsolation(#[from] ostler_model::UnmetIsolation),
    /// An invalid path or host in the sandbox options.
    #[error("{what} '{given}': {problem}")]
    InvalidSandbox {
        /// The option, for example `workspace`.
        what: &'static str,
        /// The value as given.
        given: String,
        /// The problem with it.
        problem: String,
    },
    /// The command policy denies it.
    #[error("denied by rule '{rule}': {reason}")]
    Denied {
        /// The rule's id.
        rule: String,
        /// Its justification.
        reason: String,
    },
    /// The command policy requires an approval by a person.
    #[error("rule '{rule}' asks a person first: {reason}")]
    ApprovalRequired {
        /// The rule's id.
        rule: String,
        /// Its justification.
        reason: String,
        /// The id of the interaction that waits for a person.
        interaction: String,
        /// Where the person answers.
        path: ApprovalPath,
    },
    /// A secret that cannot be passed to the command.
    #[error("secret '{name}': {problem}")]
    Secret {
        /// The name as requested.
        name: String,
        /// The problem with it.
        problem: String,
        /// Whether nothing provides its value.
        is_unset: bool,
    },
    /// The value of a secret in a field that is stored and shown as it is.
    #[error("the value of secret '{name}' is in {field}, which is stored and shown as it is")]
    SecretExposed {
        /// The name as requested.
        name: String,
        /// The field, with its article.
        field: &'static str,
    },
    /// A secret that the settings bind to other callers. The same error whether or not it exists.
    #[error("secret '{name}' is not given to this caller here")]
    SecretDenied {
        /// The name as requested.
        name: String,
    },
    /// A service request that could not be fulfilled.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A request about a context that could not be fulfilled.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Something outside the projects that the caller is limited to.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// An overlay request that could not be fulfilled.
    #[error(transparent)]
    Workspace(#[from] ostler_backend::OverlayRequestError),
    /// The tree cannot be frozen or is not.
    #[error("{} cannot be {verb}: {reason}", id.short())]
    Freeze {
        /// The execution.
        id: ExecutionId,
        /// `paused` or `resume`.
        verb: &'static str,
        /// Whether it has ended.
        is_over: bool,
        /// The cause, for people.
        reason: String,
    },
    /// The quota is exhausted, and no execution ended while the start waited.
    #[error("{0}")]
    Quota(Box<QuotaExceeded>),
    /// The session ended while the start waited for a slot.
    #[error("the session ended while the start waited for a place")]
    SessionEnded,
    /// The attempt was admitted, and its program never ran.
    #[error("could not start: {message}")]
    SpawnFailed {
        /// The execution; it is listed with status `error`.
        id: ExecutionId,
        /// The step that failed, for example `exec`.
        step: String,
        /// The kernel's error number.
        errno: Option<i32>,
        /// The cause, for people.
        message: String,
    },
    /// A question that cannot be posted, or an answer that is not accepted.
    #[error(transparent)]
    Interaction(#[from] InteractionError),
    /// The execution runs without a terminal.
    #[error("{} has no terminal", id.short())]
    NoTerminal {
        /// The execution.
        id: ExecutionId,
    },
    /// The execution is not a shell with command markers (shell integration).
    #[error("{} is no shell session", id.short())]
    NoShell {
        /// The execution.
        id: ExecutionId,
    },
    /// The shell runs another command, or does not show its prompt.
    #[error("the shell of {} takes no command now: {reason}", id.short())]
    ShellBusy {
        /// The execution.
        id: ExecutionId,
        /// What it does instead.
        reason: String,
    },
    /// It is unknown whether an earlier request's command was typed.
    #[error("whether the command was typed in {} is not known: {reason}", id.short())]
    TypingUncertain {
        /// The execution.
        id: ExecutionId,
        /// The cause, for people.
        reason: String,
    },
    /// Another client holds the writer's lease.
    #[error("{holder} types in {} now", id.short())]
    Leased {
        /// The execution.
        id: ExecutionId,
        /// The holder, for people.
        holder: String,
    },
    /// The backend could not spawn the process.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A command did not reach the execution.
    #[error(transparent)]
    ControlFailed(#[from] ControlError),
    /// It did not end in time, kill escalation included.
    #[error("{id} has not ended {waited_ms} ms after the stop")]
    StillRunning {
        /// The execution.
        id: ExecutionId,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
    /// The state directory cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Storage {
        /// The operation that failed.
        what: &'static str,
        /// The path it failed on.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file of the state directory that a newer version wrote.
    #[error("cannot read {}: version {version} is newer than this engine", path.display())]
    NewerFile {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The ledger cannot be written; nothing runs unrecorded.
    #[error("the ledger cannot be written: {problem}")]
    Ledger {
        /// The problem with it.
        problem: String,
        /// What to do about it, where known.
        hint: Option<String>,
    },
    /// A journal cannot be read.
    #[error("the output cannot be read: {0}")]
    Output(#[from] ostler_journal::ReadError),
    /// Output cannot be cleared.
    #[error("the output cannot be cleared: {0}")]
    ClearOutput(WriteError),
    /// Another engine holds the state directory.
    #[error("{} is in use by {holder}", path.display())]
    Locked {
        /// The state directory.
        path: PathBuf,
        /// The holder, as far as known: `process 123`.
        holder: String,
    },
    /// The engine shuts down.
    #[error("the engine is shutting down")]
    Closing,
}

impl Error {
    /// The ledger in this directory cannot be opened or written.
    pub(crate) fn ledger(dir: &Path, error: &WriteError) -> Self {
        Self::Ledger {
            problem: error.to_string(),
            hint: storage_hint::for_journal(dir, error),
        }
    }

    /// The same error for a request about a terminal session: [`Error::NotFound`] becomes
    /// [`Error::SessionNotFound`].
    #[must_use]
    pub fn for_session(self) -> Self {
        if matches!(self, Self::NotFound) {
            Self::SessionNotFound
        } else {
            self
        }
    }

    /// Whether a program that exists could not be executed, for which shells have an exit code of
    /// their own (126; 127 where there is none, or no interpreter for it).
    #[must_use]
    pub fn is_exec_failure(&self) -> bool {
        const ENOENT: i32 = 2;
        matches!(self, Self::SpawnFailed { errno, .. } if *errno != Some(ENOENT))
            || matches!(self, Self::Program(error) if error.is_not_executable())
    }

    /// Its stable error code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound => ErrorCode::ProcessNotFound,
            Self::SessionNotFound => ErrorCode::SessionNotFound,
            Self::Argument(ArgumentError::DirectoryPermission { .. })
            | Self::Program(ProgramError::Permission { .. })
            | Self::SecretDenied { .. }
            | Self::Project(_) => ErrorCode::Permission,
            Self::Argument(_) => ErrorCode::Value,
            Self::Program(ProgramError::NotFound { .. } | ProgramError::NotAFile { .. }) => {
                ErrorCode::CommandExecution
            }
            Self::NotAllowed(_)
            | Self::UnmetIsolation(_)
            | Self::Denied { .. }
            | Self::ApprovalRequired { .. } => ErrorCode::Security,
            Self::InvalidSandbox { .. } | Self::Secret { .. } | Self::SecretExposed { .. } => {
                ErrorCode::Value
            }
            Self::Workspace(error) => overlay_error_code(error),
            Self::Service(error) => error.code(),
            Self::Context(error) => error.code(),
            Self::Freeze { .. } => ErrorCode::ProcessControl,
            Self::Quota(_) => ErrorCode::QuotaExceeded,
            Self::SpawnFailed { step, errno, .. } => spawn_failure_code(step, *errno),
            Self::Interaction(_) => ErrorCode::Interaction,
            Self::Container(error) => container_error_code(error),
            Self::Spawn(error) => spawn_error_code(error),
            Self::NoTerminal { .. } | Self::NoShell { .. } => ErrorCode::Value,
            Self::ControlFailed(_)
            | Self::StillRunning { .. }
            | Self::ShellBusy { .. }
            | Self::Leased { .. } => ErrorCode::ProcessControl,
            Self::TypingUncertain { .. } => ErrorCode::ProcessTimeout,
            Self::Storage { .. } | Self::NewerFile { .. } | Self::Ledger { .. } => {
                ErrorCode::Storage
            }
            Self::Output(_) => ErrorCode::OutputRetrieval,
            Self::ClearOutput(_) => ErrorCode::OutputClear,
            Self::Locked { .. } | Self::Closing | Self::SessionEnded => ErrorCode::Initialization,
        }
    }

    /// Whether the same request may succeed later: as for its code, unless it is about something that
    /// is over, or that the execution never had.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        if let Self::Interaction(error) = self {
            return error.is_retryable();
        }
        let is_over = matches!(
            self,
            Self::ControlFailed(ControlError::Ended | ControlError::Unsupported(_))
                | Self::Freeze { is_over: true, .. }
        );
        !is_over && self.code().info().retryable
    }

    /// The same error, with the free space appended where the state directory refused a write.
    pub(crate) fn with_disk_space(mut self, state_dir: &Path) -> Self {
        if let Self::Ledger { problem, .. } = &mut self {
            *problem = format!("{problem}; {}", disk_space::describe(state_dir));
        }
        self
    }
}

const fn overlay_error_code(error: &ostler_backend::OverlayRequestError) -> ErrorCode {
    use ostler_backend::OverlayRequestError;
    match error {
        OverlayRequestError::None(_) | OverlayRequestError::AlreadyResolved { .. } => {
            ErrorCode::Value
        }
        OverlayRequestError::Running(_) => ErrorCode::ProcessControl,
        OverlayRequestError::Storage { .. } => ErrorCode::Storage,
    }
}

const fn container_error_code(error: &ContainerError) -> ErrorCode {
    match error {
        ContainerError::EngineStorage(_) => ErrorCode::Storage,
        ContainerError::Unsupported
        | ContainerError::NoEngine { .. }
        | ContainerError::EngineUnresponsive { .. }
        | ContainerError::NoImage { .. }
        | ContainerError::NoNetwork { .. }
        | ContainerError::Refused(_)
        | ContainerError::NotStarted(_) => ErrorCode::Environment,
    }
}

const fn spawn_error_code(error: &SpawnError) -> ErrorCode {
    match error {
        SpawnError::Zygote(_) => ErrorCode::CommandExecution,
        SpawnError::PlanTooLarge { .. } => ErrorCode::Value,
        SpawnError::Container(error) => container_error_code(error),
        SpawnError::Storage(_) => ErrorCode::Storage,
        SpawnError::OpenFiles { .. } => ErrorCode::QuotaExceeded,
    }
}

/// The hint for a daemon that has reached its limit of open files.
pub const OPEN_FILES_HINT: &str = "stop an execution that is not needed, or raise the hard limit \
    (`ulimit -Hn`, LimitNOFILE= of a systemd unit) where the daemon is started, end the daemon \
    with `ostler shutdown`, and try again: executions go on meanwhile";

/// The step of a spawn whose plan exceeds what one message can carry.
pub(crate) const PLAN_STEP: &str = "plan";

pub(super) fn spawn_failure_code(step: &str, errno: Option<i32>) -> ErrorCode {
    use rustix::io::Errno;
    let is = |known: &[Errno]| errno.is_some_and(|it| known.iter().any(|e| e.raw_os_error() == it));
    if step == STEP_OPEN_FILES || (step == STEP_TERMINAL && is(&[Errno::AGAIN])) {
        ErrorCode::QuotaExceeded
    } else if step == STEP_STORAGE || is(&[Errno::NOSPC, Errno::DQUOT, Errno::ROFS]) {
        ErrorCode::Storage
    } else if step == PLAN_STEP {
        ErrorCode::Value
    } else if is(&[Errno::PERM, Errno::ACCESS]) {
        ErrorCode::Permission
    } else {
        ErrorCode::CommandExecution
    }
}
