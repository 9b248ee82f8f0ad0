//! Requests to the engine.

use std::time::Duration;

use ostler_backend::DiskScope;
use ostler_journal::Pattern;
use ostler_model::status::ProcessStatus;
use ostler_model::{
    ByteString, Command, ContextId, Cursor, ExecutionId, Lifetime, Limits, RequestRecord,
    ShellSession, StartOptions, TemplateRecord,
};

use serde::Serialize;

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
    /// What every way to start something may ask for.
    pub options: StartOptions,
    /// Finite, service or terminal, with its limits; none is finite with `timeout` and `idle`.
    pub lifetime: Option<Lifetime>,
    /// The API surface that the request came from; decides the default retention.
    pub client_kind: ClientKind,
    /// Present where the command is an integrated shell; made by
    /// [`Engine::shell_request`](crate::Engine::shell_request).
    pub shell: Option<ShellSession>,
    /// Whether the caller reads the output with [`OutputFollower::lossless`](crate::OutputFollower)
    /// from the beginning: on a full disk the command waits for that reader, for a limited time
    /// until it begins. Without it, a full disk stops no command.
    pub lossless_reader: bool,
    /// The request that this one was made from, for the record; none where this is as its client
    /// made it. Set by the start of a service.
    pub original: Option<Box<RequestRecord>>,
    /// The template that the command was made from, for the record; where it says so, a person must
    /// agree to the start. Set by [`StartRequest::with_template`].
    pub template: Option<Box<TemplateRecord>>,
    /// The context that it runs in: its directory, options and variables hold for this start, too.
    pub context: Option<ContextId>,
    /// Limits where neither the options nor the settings for all executions set one. What the host
    /// cannot enforce of them is reported and not refused. Set from the settings of contexts.
    pub default_limits: Limits,
    /// The directory whose growth counts for the disk limit instead of that of the workspace alone.
    /// Set by the start in a context.
    pub disk_scope: Option<DiskScope>,
    /// Whether it is a task of its owner's project: its command gets the ids of both in variables.
    pub is_task: bool,
}

/// Where standard input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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

impl ClientKind {
    const ALL: [Self; 7] = [
        Self::Command,
        Self::Shell,
        Self::Core,
        Self::Pty,
        Self::Cli,
        Self::Rest,
        Self::Library,
    ];

    /// The one of this name in the ledger; the library where it is unknown.
    pub(crate) fn of_name(name: Option<&str>) -> Self {
        let found = Self::ALL
            .into_iter()
            .find(|kind| Some(kind.as_str()) == name);
        found.unwrap_or(Self::Library)
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
            options: StartOptions::default(),
            lifetime: None,
            client_kind: ClientKind::Library,
            shell: None,
            lossless_reader: false,
            original: None,
            template: None,
            context: None,
            default_limits: Limits::default(),
            disk_scope: None,
            is_task: false,
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

    /// The same as made from this template, with its label.
    #[must_use]
    pub fn with_template(mut self, template: TemplateRecord) -> Self {
        let label = template.label();
        if !self.options.labels.contains(&label) {
            self.options.labels.push(label);
        }
        self.template = Some(Box::new(template));
        self
    }
}

/// The condition of a wait.
#[derive(Debug, Clone)]
pub enum WaitFor {
    /// None: returns the current state.
    Nothing,
    /// The end of the execution.
    Exit,
    /// A matching line, or the end. The search begins at the oldest line kept or, where input was
    /// sent, after the last input: a prompt that was answered does not match.
    ///
    /// A line is searched as displayed: without escape sequences and other control characters, and
    /// each part that a carriage return separates by itself. The last line is also searched while
    /// it is unfinished. In a line longer than [`WINDOW_BYTES`](crate::search::WINDOW_BYTES) a
    /// match must fit into [`OVERLAP_BYTES`](crate::search::OVERLAP_BYTES).
    Pattern(Pattern),
    /// As [`WaitFor::Pattern`], but only lines that end after this position, and the line that
    /// has no end yet.
    PatternAfter(Pattern, Cursor),
    /// As [`WaitFor::Pattern`], in the output after this input was sent; neither the echo of the
    /// input nor a redraw of the line in which it was typed matches.
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
