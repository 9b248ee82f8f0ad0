//! What was asked. Immutable once an execution exists; secrets by name only.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;
use crate::isolation::IsolationSpec;
use crate::owner::Owner;
use crate::service::ServicePlan;

/// One request to run a command, resolved and admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// What to run.
    pub command: Command,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// What the environment is made of.
    pub env: Environment,
    /// How bytes go in and out.
    pub io: Io,
    /// When it may end, and what happens then.
    pub lifetime: Lifetime,
    /// Isolation and limits: asked, in force, missing.
    pub policy: IsolationSpec,
    /// Where processes are born.
    pub place: BackendName,
    /// Who may see it.
    pub owner: Owner,
    /// What to call it, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// For filtering; kept in the order given, without doubles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The WHATWG label output is decoded with on reading, or `auto`; none means UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// How long the journal is kept after the end; none keeps it until cleaned.
    #[serde(
        default,
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub retention: Option<Duration>,
    /// Whether the execution outlives its session (D3) and the daemon's shutdown.
    #[serde(default)]
    pub keep: bool,
    /// The face it was started through, in the ledger's words; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<String>,
    /// Present where the command is a shell that tells where commands begin and end (C14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellSession>,
}

/// A shell that tells where commands begin and end by OSC 133, and the secret its marks carry,
/// so that a program's output cannot pretend to be the shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSession {
    /// Which shell.
    pub kind: ShellKind,
    /// What its marks carry: letters and digits.
    pub nonce: String,
}

/// A shell that can be made to tell.
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

/// A program that is no shell we know how to integrate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no shell with integration; allowed: bash, zsh, fish")]
pub struct UnknownShell {
    given: String,
}

impl ShellKind {
    /// Its name, which is also its program's.
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

    /// By the base name of a program: `bash`, `/usr/bin/zsh`.
    fn from_str(program: &str) -> Result<Self, UnknownShell> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let all = [Self::Bash, Self::Zsh, Self::Fish];
        let found = all.into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| UnknownShell {
            given: program.to_owned(),
        })
    }
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments, verbatim; no shell ever sees them (A12).
    Argv {
        /// The program as the caller wrote it: a name looked up in `PATH`, or a path.
        program: ByteString,
        /// The arguments after it.
        args: Vec<ByteString>,
    },
    /// A script for a shell, asked for as such.
    Shell {
        /// The shell's path, for example `/bin/sh`.
        shell: ByteString,
        /// The script, passed to `-c`.
        script: ByteString,
    },
}

/// Bytes of the longest script (D1).
pub const SCRIPT_BYTES: usize = 128 * 1024;
/// Bytes one argument can have: the kernel's `MAX_ARG_STRLEN`, less the final NUL.
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Runs a script that came in two arguments as if it had come in one: evaluated in the same
/// shell, without arguments of its own.
const SCRIPT_IN_TWO: &str = r#"eval "shift 2;$1$2""#;

impl Command {
    /// The argument vector as execve(2) will get it, program name first. A script of up to
    /// [`SCRIPT_BYTES`] that no single argument can carry is handed over in two.
    #[must_use]
    pub fn argv(&self) -> Vec<ByteString> {
        match self {
            Self::Argv { program, args } => std::iter::once(program).chain(args).cloned().collect(),
            Self::Shell { shell, script } => {
                let mut words = vec![shell.clone(), ByteString::from("-c")];
                if (ARGUMENT_BYTES + 1..=SCRIPT_BYTES).contains(&script.len()) {
                    let (one, two) = script.as_bytes().split_at(ARGUMENT_BYTES);
                    words.extend([ByteString::from(SCRIPT_IN_TWO), shell.clone()]);
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

    /// One line for people; the script itself where there is one.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Shell { script, .. } => script.to_string(),
            Self::Argv { .. } => {
                let words: Vec<String> = self.argv().iter().map(quoted).collect();
                words.join(" ")
            }
        }
    }
}

/// A word as a POSIX shell would need it quoted; for display, never for execution.
#[must_use]
pub fn quoted(word: &ByteString) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^~".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What the environment of the command is made of (D8).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Whether the whole environment of the asking front is passed on; otherwise only the
    /// listed base names are.
    #[serde(default)]
    pub inherit: bool,
    /// Variables added or replaced by the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(ByteString, ByteString)>,
    /// Names of secrets; their values never reach a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// How bytes go in and out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    /// Separate pipes for output and errors.
    Pipes {
        /// Where standard input comes from.
        stdin: StdinSource,
    },
    /// One terminal.
    Pty {
        /// Its size at the start.
        size: TermSize,
    },
}

/// Where standard input comes from. The bytes themselves are not kept, only their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinSource {
    /// At end of file from the start.
    Empty,
    /// This many bytes given with the request, then end of file.
    Given {
        /// Their number.
        bytes: u64,
    },
    /// Open until it is closed by request; silent until written to.
    Open,
}

/// A terminal's size in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl TermSize {
    /// The most columns a terminal gets. A screen keeps 16 bytes a cell, twice: the largest
    /// takes 32 MB, however large a window claims to be.
    pub const COLS_MAX: u16 = 1000;

    /// The most rows a terminal gets.
    pub const ROWS_MAX: u16 = 1000;

    /// Whether a terminal can have this size: something of both, and not too much.
    #[must_use]
    pub fn is_fitting(self) -> bool {
        self == self.fitting()
    }

    /// The nearest size a terminal can have.
    #[must_use]
    pub fn fitting(self) -> Self {
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
    /// It ends by itself, or when a clock runs out.
    Finite {
        /// Wall-clock limit of the command.
        #[serde(
            default,
            with = "optional_millis",
            skip_serializing_if = "Option::is_none"
        )]
        timeout: Option<Duration>,
        /// Limit of time without output.
        #[serde(
            default,
            with = "optional_millis",
            skip_serializing_if = "Option::is_none"
        )]
        idle: Option<Duration>,
    },
    /// It is meant to stay.
    Service {
        /// What happens when it ends anyway.
        restart: RestartPolicy,
        /// When it is ready, what shows that it is well, what it needs.
        #[serde(default)]
        plan: Box<ServicePlan>,
    },
}

impl Lifetime {
    /// A service of which nothing is asked but to stay.
    #[must_use]
    pub fn service(restart: RestartPolicy) -> Self {
        Self::Service {
            restart,
            plan: Box::default(),
        }
    }

    /// What is asked of a service; none of what is finite.
    #[must_use]
    pub const fn plan(&self) -> Option<&ServicePlan> {
        match self {
            Self::Finite { .. } => None,
            Self::Service { plan, .. } => Some(plan),
        }
    }

    /// What happens to processes the leader leaves behind.
    #[must_use]
    pub const fn leftovers(&self) -> OrphanPolicy {
        match self {
            Self::Finite { .. } => OrphanPolicy::Kill,
            Self::Service { .. } => OrphanPolicy::Keep,
        }
    }
}

/// What happens when a service's process ends without having been asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartPolicy {
    /// It stays ended.
    Never,
    /// Another attempt follows every end but a success, at most this many times.
    OnFailure {
        /// Attempts after the first.
        max: u32,
    },
    /// Another attempt follows every end, at most this many times.
    Always {
        /// Attempts after the first.
        max: u32,
    },
}

/// What happens to processes that outlive the leader of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanPolicy {
    /// They are ended, and counted in the answer.
    Kill,
    /// They live on under the shim until the execution is stopped.
    Keep,
}

/// The name of a place where processes are born: `local` today.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackendName(pub String);

impl BackendName {
    /// This machine.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

/// Which stream a byte came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, through a terminal.
    Pty,
    /// Audited input.
    Stdin,
}

/// Durations as whole milliseconds, absent when none.
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
