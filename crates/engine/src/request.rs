//! Requests to the engine.

use std::time::Duration;

use ostler_journal::Pattern;
use ostler_model::status::ProcessStatus;
use ostler_model::{
    ByteString, Capability, Command, Cursor, ExecutionId, IsolationLevel, Lifetime, Limits,
    NetworkAccess, PortForward, ShellSession, TermSize,
};
use serde::{Deserialize, Serialize};

use crate::search::SentInput;

/// A request to run a command, before admission.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// Its id, chosen by the client; none lets the engine generate one. A start whose id belongs to
    /// an execution of the same principal returns that execution: it can be sent again when its
    /// response was lost, also to the next engine.
    pub id: Option<ExecutionId>,
    /// What to run.
    pub command: Command,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// Where standard input comes from; ignored with a terminal.
    pub stdin: StdinRequest,
    /// The client's environment, of which the engine keeps the base names (or all, with
    /// `inherit_env`); empty takes that of the settings.
    pub base_env: Vec<(ByteString, ByteString)>,
    /// Variables added or replaced.
    pub set_env: Vec<(ByteString, ByteString)>,
    /// Whether all of `base_env` is passed on; none takes the setting.
    pub inherit_env: Option<bool>,
    /// Wall-clock limit of the command.
    pub timeout: Option<Duration>,
    /// Limit of time without output.
    pub idle: Option<Duration>,
    /// The isolation level; none takes the setting.
    pub level: Option<IsolationLevel>,
    /// Limits of its tree; none of a field takes the level's default.
    pub limits: Limits,
    /// Labels for filtering.
    pub labels: Vec<String>,
    /// A description for people.
    pub description: String,
    /// The WHATWG label output is decoded with, or `auto`; none takes the setting.
    pub encoding: Option<String>,
    /// How long it is kept after its end.
    pub retention: RetentionRequest,
    /// Whether it outlives its session.
    pub keep: bool,
    /// Finite, service or terminal, with its limits; none is finite with `timeout` and `idle`.
    pub lifetime: Option<Lifetime>,
    /// A terminal of this size instead of pipes.
    pub pty: Option<TermSize>,
    /// The API surface that the request came from; decides the default retention.
    pub client_kind: ClientKind,
    /// The only programs that may run, in addition to the settings' own list: a request can
    /// tighten, never loosen. None adds nothing.
    pub allowed: Option<Vec<String>>,
    /// What isolation level high exposes and reaches beyond its defaults; must be the default at
    /// lower levels.
    pub sandbox: SandboxOptions,
    /// Names of secrets whose values go into the environment under the same names; the values
    /// come from [`Settings::secrets`](crate::Settings).
    pub secrets: Vec<String>,
    /// The approval by a person where the command policy requires one: the interaction's id.
    pub approval: Option<String>,
    /// The longest wait for a slot when the quota is exhausted; none takes
    /// [`QUEUE_WAIT_MS`](crate::QUEUE_WAIT_MS), which is also the maximum. Zero refuses at once.
    pub queue_timeout: Option<Duration>,
    /// Present where the command is an integrated shell; made by
    /// [`MatchEngine::shell_request`](crate::Engine::shell_request).
    pub shell: Option<ShellSession>,
    /// Whether the caller reads the output with [`OutputFollower::lossless`](crate::OutputFollower)
    /// from the beginning: on a full disk the command waits for that reader, for a limited time
    /// until it begins. Without it, a full disk stops no command.
    pub lossless_reader: bool,
}

/// What isolation level high exposes and reaches beyond its defaults. The working directory is the
/// workspace, unless it is private inside the sandbox anyway (`/tmp`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxOptions {
    /// The writable directory; none takes the working directory, which must be below it.
    pub workspace: Option<ByteString>,
    /// Whether writes to the workspace go to an overlay, to be committed or discarded.
    pub overlay: bool,
    /// The network access; none takes the setting.
    pub network: Option<NetworkAccess>,
    /// Additional read-only paths, absolute.
    pub read: Vec<ByteString>,
    /// Additional writable paths, absolute.
    pub write: Vec<ByteString>,
    /// Ports of the host's loopback that are forwarded into the command's network namespace.
    pub forwards: Vec<PortForward>,
    /// Capabilities that may be missing without a refusal; every answer reports those that are.
    pub allow_degraded: Vec<Capability>,
}

/// Where standard input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StdinRequest {
    /// Finite executions: at end of file. Services: open, without input.
    #[default]
    Default,
    /// At end of file from the start.
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// Open until closed by request.
    Open,
}

/// How long an execution is kept after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetentionRequest {
    /// The settings' default for the API surface.
    #[default]
    Default,
    /// This long.
    For(Duration),
    /// Until it is cleaned.
    Forever,
}

/// The API surface that a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientKind {
    /// The command tools.
    Command,
    /// The shell tools.
    Shell,
    /// The core tools (`exec`).
    Core,
    /// Terminal sessions.
    Pty,
    /// The command line.
    Cli,
    /// HTTP.
    Rest,
    /// The embedding program.
    Library,
}

impl ClientKind {
    /// Its name in the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Shell => "shell",
            Self::Core => "core",
            Self::Pty => "pty",
            Self::Cli => "cli",
            Self::Rest => "rest",
            Self::Library => "library",
        }
    }
}

impl StartRequest {
    /// A request with every default, from the library face.
    #[must_use]
    pub fn new(command: Command, cwd: impl Into<ByteString>) -> Self {
        Self {
            id: None,
            command,
            cwd: cwd.into(),
            stdin: StdinRequest::Default,
            base_env: Vec::new(),
            set_env: Vec::new(),
            inherit_env: None,
            timeout: None,
            idle: None,
            level: None,
            limits: Limits::default(),
            labels: Vec::new(),
            description: String::new(),
            encoding: None,
            retention: RetentionRequest::Default,
            keep: false,
            lifetime: None,
            pty: None,
            client_kind: ClientKind::Library,
            allowed: None,
            sandbox: SandboxOptions::default(),
            secrets: Vec::new(),
            approval: None,
            queue_timeout: None,
            shell: None,
            lossless_reader: false,
        }
    }

    /// A request for a program and its arguments, with every default.
    #[must_use]
    pub fn argv<T: Into<ByteString>>(
        words: impl IntoIterator<Item = T>,
        cwd: impl Into<ByteString>,
    ) -> Self {
        let mut words = words.into_iter().map(Into::into);
        let program = words.next().unwrap_or_default();
        let args = words.collect();
        Self::new(Command::Argv { program, args }, cwd)
    }
}

/// The condition of a wait.
#[derive(Debug, Clone)]
pub enum WaitFor {
    /// None: returns the current state.
    Nothing,
    /// Its end.
    Exit,
    /// A line of output that matches; or its end. Lines are searched from the oldest one kept, and
    /// where input was sent, from what was printed after the last of it: a prompt that was answered
    /// does not match.
    ///
    /// A line is searched as it reads: without escape sequences and other control characters,
    /// and each part that a carriage return separates by itself. The last line is searched
    /// also while it has no end. Of a line beyond
    /// [`WINDOW_BYTES`](crate::search::WINDOW_BYTES) a match must fit into its
    /// [`OVERLAP_BYTES`](crate::search::OVERLAP_BYTES).
    Pattern(Pattern),
    /// As [`WaitFor::Pattern`], but only lines that end after this position, and the line that
    /// has no end yet.
    PatternAfter(Pattern, Cursor),
    /// As [`WaitFor::Pattern`], in what was printed after this input was sent; neither the echo of
    /// the input nor a redraw of the line it was typed in matches.
    PatternAfterInput(Pattern, SentInput),
    /// Any output after this position; or its end.
    OutputAfter(Cursor),
    /// No output for this long; or its end.
    Idle(Duration),
    /// A prompt of the command; or its end.
    Prompt,
    /// A service is ready, or runs without a readiness rule; or it reports a failure; or the end of
    /// an attempt.
    Ready,
}

/// Options of a stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopRequest {
    /// Kill at once, without grace.
    pub force: bool,
    /// Between the termination signal and the kill; none takes the setting.
    pub grace: Option<Duration>,
    /// Recorded with the stop.
    pub reason: Option<String>,
}

/// Selects executions to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListFilter {
    /// Only those with this status.
    pub status: Option<ProcessStatus>,
    /// Only those that carry all of these labels.
    pub labels: Vec<String>,
    /// At most this many.
    pub limit: Option<usize>,
}
