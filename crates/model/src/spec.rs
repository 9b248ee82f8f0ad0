//! The specification of an execution. Immutable once the execution exists; secrets by name only.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;
use crate::isolation::IsolationSpec;
use crate::owner::Owner;
use crate::service::ServicePlan;

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
    /// The interface it was started through, as the ledger names it; none where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<String>,
    /// Present where the command is a shell that marks the beginning and the end of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellSession>,
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

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments, verbatim; never passed through a shell.
    Argv {
        /// The program as the caller wrote it: a name looked up in `PATH`, or a path.
        program: ByteString,
        /// The arguments after it.
        args: Vec<ByteString>,
    },
    /// A script for a shell, only where the request names a shell.
    Shell {
        /// The shell's path, for example `/bin/sh`.
        shell: ByteString,
        /// The script, passed to `-c`.
        script: ByteString,
    },
}

/// The length of the longest script in bytes.
pub const SCRIPT_BYTES: usize = 128 * 1024;
/// The length of the longest argument in bytes: the kernel's `MAX_ARG_STRLEN`, less the final NUL.
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Runs a script that was passed in two arguments as if it were one: evaluated in the same
/// shell, without positional parameters of its own.
const SPLIT_SCRIPT: &str = r#"eval "shift 2;$1$2""#;

impl Command {
    /// The argument vector for execve(2), program name first. A script of up to [`SCRIPT_BYTES`]
    /// that is too long for one argument is passed in two.
    #[must_use]
    pub fn argv(&self) -> Vec<ByteString> {
        match self {
            Self::Argv { program, args } => std::iter::once(program).chain(args).cloned().collect(),
            Self::Shell { shell, script } => {
                let mut words = vec![shell.clone(), ByteString::from("-c")];
                if (ARGUMENT_BYTES + 1..=SCRIPT_BYTES).contains(&script.len()) {
                    let (one, two) = script.as_bytes().split_at(ARGUMENT_BYTES);
                    words.extend([ByteString::from(SPLIT_SCRIPT), shell.clone()]);
                    words.extend([ByteString::from(one), ByteString::from(two)]);
                } else {
                    words.push(script.clone());
                }
                words
            }
        }
    }

    /// The program or shell to look up.
    #[must_use]
    pub const fn program(&self) -> &ByteString {
        match self {
            Self::Argv { program, .. } => program,
            Self::Shell { shell, .. } => shell,
        }
    }

    /// One line for people; for a script, the script itself.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Shell { script, .. } => script.to_string(),
            Self::Argv { .. } => {
                let words: Vec<String> = self.argv().iter().map(shell_quote).collect();
                words.join(" ")
            }
        }
    }
}

/// Quotes a word for a POSIX shell; for display, never for execution.
#[must_use]
pub fn shell_quote(word: &ByteString) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^~".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
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

/// Where standard input comes from. The bytes themselves are not kept, only their number.
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

/// The size of a terminal in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl TermSize {
    /// The most columns of a terminal. The emulator keeps 16 bytes for each cell, twice: the
    /// largest size takes 32 MB, whatever size a client requests.
    pub const COLS_MAX: u16 = 1000;

    /// The most rows of a terminal.
    pub const ROWS_MAX: u16 = 1000;

    /// Whether the size is allowed: both dimensions at least 1 and at most the maximum.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self == self.clamped()
    }

    /// The nearest allowed size.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            cols: self.cols.clamp(1, Self::COLS_MAX),
            rows: self.rows.clamp(1, Self::ROWS_MAX),
        }
    }
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
        /// What happens when it ends all the same.
        restart: RestartPolicy,
        /// When it is ready, what shows that it is healthy, what it depends on.
        #[serde(default)]
        plan: Box<ServicePlan>,
    },
}

impl Lifetime {
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

    /// What happens to processes that the leader leaves behind.
    #[must_use]
    pub const fn orphan_policy(&self) -> OrphanPolicy {
        match self {
            Self::Finite { .. } => OrphanPolicy::Kill,
            Self::Service { .. } => OrphanPolicy::Keep,
        }
    }
}

/// What happens when the process of a service ends without a stop request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartPolicy {
    /// It is not started again.
    Never,
    /// It is started again after every end but a success, at most this many times.
    OnFailure {
        /// Attempts after the first.
        max: u32,
    },
    /// It is started again after every end, at most this many times.
    Always {
        /// Attempts after the first.
        max: u32,
    },
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

/// The name of a backend; `local` is the only one today.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackendName(pub String);

impl BackendName {
    /// The backend of this machine.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }
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

/// Serializes durations as whole milliseconds; absent when none.
pub(crate) mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = value.map(|value| u64::try_from(value.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
