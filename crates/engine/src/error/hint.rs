//! What to do about an [`enum@Error`](super::Error), where known.

use std::path::Path;

use ostler_backend::{ContainerError, STEP_OPEN_FILES, STEP_TERMINAL, SpawnError};
use ostler_model::ErrorCode;

use super::engine_error::spawn_failure_code;
use super::{Error, OPEN_FILES_HINT, retry_hint, storage_hint};

impl Error {
    /// What to do about it, where known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound => Some("list the processes to see which there are".to_owned()),
            Self::SessionNotFound => Some("list the sessions to see which there are".to_owned()),
            Self::Argument(error) => error.hint(),
            Self::Program(error) => error.hint(),
            Self::NotAllowed(error) => error.hint(),
            Self::Container(error) | Self::Spawn(SpawnError::Container(error)) => {
                container_error_hint(error)
            }
            Self::Quota(_) => {
                Some("wait for one of them to end, or stop one, and try again".to_owned())
            }
            Self::SpawnFailed { step, errno, .. } => spawn_failure_hint(step, *errno),
            Self::Spawn(SpawnError::OpenFiles { .. }) => Some(OPEN_FILES_HINT.to_owned()),
            Self::Spawn(_) | Self::Closing => Some("try again in a moment".to_owned()),
            Self::StillRunning { .. } => Some("stop it again with force".to_owned()),
            Self::Storage { path, source, .. } => storage_hint::for_io(path, source),
            Self::NewerFile { path, .. } => Some(storage_hint::newer_version(path)),
            Self::Ledger { hint, .. } => hint.clone(),
            Self::ClearOutput(error) => storage_hint::for_journal(Path::new(""), error),
            Self::Locked { .. } => Some(
                "connect to the engine that runs, end it, or choose another state directory"
                    .to_owned(),
            ),
            Self::Interaction(error) => error.hint(),
            Self::Service(error) => error.hint(),
            Self::Context(error) => error.hint(),
            Self::Project(error) => error.hint(),
            Self::NoTerminal { .. } => Some("start it with a terminal".to_owned()),
            Self::NoShell { .. } => Some("start a shell session, or type into it".to_owned()),
            Self::ShellBusy { .. } => {
                Some("look at its screen; interrupt it with ctrl-c, or answer it".to_owned())
            }
            Self::TypingUncertain { .. } => {
                Some("look at its screen before the command is typed again".to_owned())
            }
            Self::Leased { .. } => Some("wait until it is handed back".to_owned()),
            Self::UnmetIsolation(_) => Some(
                "'ostler doctor' shows what this host lacks and what helps; allow_degraded does \
                 without"
                    .to_owned(),
            ),
            Self::ApprovalRequired {
                interaction, path, ..
            } => Some(retry_hint(interaction, *path)),
            Self::ControlFailed(_)
            | Self::Output(_)
            | Self::InvalidSandbox { .. }
            | Self::Denied { .. }
            | Self::Workspace(_)
            | Self::SessionEnded
            | Self::Freeze { .. } => None,
            Self::SecretDenied { name } => Some(format!(
                "without a binding a secret is for the local user alone; [secrets.{name}] in the \
                 daemon's configuration names principals and projects"
            )),
            Self::SecretExposed { name, .. } => Some(format!(
                "leave it out: the command has it in its variable {name}, and arguments and values of \
                 variables of a start may hold it"
            )),
            Self::Secret {
                is_unset: false, ..
            } => None,
            Self::Secret { name, .. } => Some(format!(
                "set OSTLER_SECRET_{name} where the front starts, or put it into the file that \
                 'ostler config explain' calls secrets.file"
            )),
        }
    }
}

fn container_error_hint(error: &ContainerError) -> Option<String> {
    match error {
        ContainerError::NoEngine { .. } => Some(
            "start Docker or Podman, or name its socket in the setting container.socket; 'ostler \
             doctor' shows what is found"
                .to_owned(),
        ),
        ContainerError::EngineUnresponsive { .. } => Some(
            "see that the container engine runs, and try again; 'ostler doctor' asks it".to_owned(),
        ),
        ContainerError::NoImage { image } => {
            Some(format!("fetch it with 'ostler image pull {image}'"))
        }
        ContainerError::NoNetwork { .. } => {
            Some("use 'bridge' or 'none', or create the network in the container engine".to_owned())
        }
        ContainerError::EngineStorage(_) => {
            Some("remove images and containers that are not needed, and try again".to_owned())
        }
        ContainerError::Unsupported
        | ContainerError::Refused(_)
        | ContainerError::NotStarted(_) => None,
    }
}

fn spawn_failure_hint(step: &str, errno: Option<i32>) -> Option<String> {
    const NO_ENTRY: i32 = 2;
    const NO_EXEC: i32 = 8;
    if step == STEP_TERMINAL {
        return Some("close terminal sessions, or raise kernel.pty.max, and try again".to_owned());
    }
    if step == STEP_OPEN_FILES {
        return Some(OPEN_FILES_HINT.to_owned());
    }
    if spawn_failure_code(step, errno) == ErrorCode::Storage {
        return Some(storage_hint::FREE_SPACE.to_owned());
    }
    match errno {
        Some(NO_EXEC) => Some("it is no program for this machine; a script needs a '#!' line"),
        // On this machine, admission found the program: its interpreter or loader is missing.
        Some(NO_ENTRY) if step == "exec" => Some(
            "it, its interpreter or its loader is missing; in a container, what is not in the image or \
             mounted is not there, and at level high, what is not shown: name its directory in read",
        ),
        _ => None,
    }
    .map(str::to_owned)
}
