//! The specification of an execution. Immutable once the execution exists; secrets by name only.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;
use crate::container::ContainerSpec;
use crate::isolation::IsolationSpec;
use crate::millis::optional_millis;
use crate::owner::Owner;
use crate::request_record::RequestRecord;
use crate::service::ServicePlan;

pub use crate::backend_name::BackendName;
pub use crate::command::{Command, SCRIPT_BYTES, shell_quote};
pub use crate::restart_policy::RestartPolicy;
pub use crate::term_size::TermSize;

/// One request to run a command, resolved and admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The command to run.
    pub command: Command,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// How the environment is built.
    pub env: Environment,
    /// How standard streams are connected.
    pub io: Io,
    /// When it may end, and what happens then.
    pub lifetime: Lifetime,
    /// Isolation and limits: requested, in force, missing.
    pub policy: IsolationSpec,
    /// The backend that starts its processes.
    pub place: BackendName,
    /// Its container, where that backend runs containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerSpec>>,
    /// The owner, which decides who may see it.
    pub owner: Owner,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Labels for filtering, in the order given, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The WHATWG label of the encoding by which reads decode output, or `auto`; none means UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// How long the journal is kept after the end; none keeps it until cleaned.
    #[serde(
        default,
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub retention: Option<Duration>,
    /// Whether the execution outlives its session and the daemon's shutdown.
    #[serde(default)]
    pub keep: bool,
    /// Whether its input is recorded in its journal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_input: bool,
    /// The interface it was started through, as the ledger names it; none where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<String>,
    /// Present where the command is a shell that marks the beginning and the end of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellSession>,
    /// The request as its client made it; none where an earlier version started it.
    #[serde(
        default,
        deserialize_with = "RequestRecord::deserialize_known",
        skip_serializing_if = "Option::is_none"
    )]
    pub request: Option<Box<RequestRecord>>,
}

/// A shell that marks the beginning and the end of commands by OSC 133 sequences, and the nonce
/// they carry, so that the output of a program cannot imitate them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSession {
    /// The shell program.
    pub kind: ShellKind,
    /// The nonce in its marks: letters and digits.
    pub nonce: String,
}

/// A shell that the engine can integrate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    /// GNU bash, 4.4 or later.
    Bash,
    /// zsh, 5.3 or later.
    Zsh,
    /// fish, 3.2 or later.
    Fish,
}

/// The error for a program that is not a shell the engine can integrate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no shell with integration; allowed: bash, zsh, fish")]
pub struct UnknownShell {
    given: String,
}

impl ShellKind {
    /// The name of the shell and of its program.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }
}

impl std::str::FromStr for ShellKind {
    type Err = UnknownShell;

    /// Parses the base name of a program: `bash`, `/usr/bin/zsh`.
    fn from_str(program: &str) -> Result<Self, UnknownShell> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let all = [Self::Bash, Self::Zsh, Self::Fish];
        let found = all.into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| UnknownShell {
            given: program.to_owned(),
        })
    }
}

/// How the environment of the command is built.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Whether the whole environment of the calling client is passed on; otherwise only the
    /// listed base variables are.
    #[serde(default)]
    pub inherit: bool,
    /// Variables that the request adds or replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(ByteString, ByteString)>,
    /// Names of secrets; their values never reach a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// How standard streams are connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    /// Separate pipes for output and errors.
    Pipes {
        /// Where standard input comes from.
        stdin: StdinSource,
    },
    /// A pseudo-terminal.
    Pty {
        /// The size at the start.
        size: TermSize,
    },
}

/// Where standard input comes from. The bytes themselves are not part of the specification, only
/// their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinSource {
    /// At end of file from the start.
    Empty,
    /// Bytes given with the request, then end of file.
    Given {
        /// The number of bytes.
        bytes: u64,
    },
    /// A pipe that stays open until it is closed by request; silent until written to.
    Open,
}

/// When an execution may end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// A command that ends by itself, or by a timeout.
    Finite {
        /// The timeout of the whole run.
        #[serde(
            default,
            with = "optional_millis",
            skip_serializing_if = "Option::is_none"
        )]
        timeout: Option<Duration>,
        /// The timeout without output.
        #[serde(
            default,
            with = "optional_millis",
            skip_serializing_if = "Option::is_none"
        )]
        idle: Option<Duration>,
    },
    /// A service, which is meant to stay.
    Service {
        /// What happens when it ends.
        restart: RestartPolicy,
        /// The rules of readiness and health, and the dependencies.
        #[serde(default)]
        plan: Box<ServicePlan>,
    },
}

impl Lifetime {
    /// The same with every text changed that may contain the value of a secret.
    #[must_use]
    pub fn map_texts(self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        match self {
            Self::Finite { .. } => self,
            Self::Service { restart, plan } => Self::Service {
                restart,
                plan: Box::new(plan.map_texts(change)),
            },
        }
    }

    /// A service with default readiness, health and dependencies.
    #[must_use]
    pub fn service(restart: RestartPolicy) -> Self {
        Self::Service {
            restart,
            plan: Box::default(),
        }
    }

    /// The plan of a service; none for a finite command.
    #[must_use]
    pub const fn plan(&self) -> Option<&ServicePlan> {
        match self {
            Self::Finite { .. } => None,
            Self::Service { plan, .. } => Some(plan),
        }
    }

    /// What happens to processes that the leader leaves.
    #[must_use]
    pub const fn orphan_policy(&self) -> OrphanPolicy {
        match self {
            Self::Finite { .. } => OrphanPolicy::Kill,
            Self::Service { .. } => OrphanPolicy::Keep,
        }
    }
}

/// What happens to processes that outlive the leader of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanPolicy {
    /// They are killed, and counted in the response.
    Kill,
    /// They keep running under the shim until the execution is stopped.
    Keep,
}

/// The stream that a byte came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Standard output and error together, through a pseudo-terminal.
    Pty,
    /// Standard input, where it is audited.
    Stdin,
}
