//! A request to run a command.

use ostler_model::{
    ByteString, Command, ExecutionId, IsolationLevel, Limits, RestartPolicy, TermSize,
};
use serde::{Deserialize, Serialize};

use super::sandbox::SandboxOptionsBody;
use super::service_request::ServiceModeBody;

/// `POST /api/v1/executions`. Durations are milliseconds. Only `command` and `cwd` are required;
/// text that is not UTF-8 is passed as `{"base64": "…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartBody {
    /// The id to use, a `UUIDv7` of about now; absent means that the daemon chooses one. Repeating
    /// a start with its id returns what the first request started: for retries after a lost
    /// response, also to the next daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ExecutionId>,
    /// `{"argv": {"program", "args"}}` or `{"shell": {"shell", "script"}}`.
    #[serde(deserialize_with = "strict::command")]
    pub command: Command,
    /// The absolute working directory.
    pub cwd: ByteString,
    /// The source of standard input.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stdin: StdinBody,
    /// The environment of the requesting client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_env: Vec<(ByteString, ByteString)>,
    /// Environment variables added or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(ByteString, ByteString)>,
    /// Whether all of `base_env` is passed on; absent means the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    /// The wall-clock limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The limit of time without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// The isolation level; absent means the daemon's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationLevel>,
    /// Isolation options beyond the defaults of level high.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confine: SandboxOptionsBody,
    /// Names of secrets whose values go into the environment under the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The id of the interaction in which a person gave approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// How long to wait for a slot while the quota is used up, in milliseconds; the default and the
    /// maximum are 45 s. 0 is refused at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place_wait_ms: Option<u64>,
    /// The limits of its tree.
    #[serde(
        default,
        deserialize_with = "strict::limits",
        skip_serializing_if = "is_default"
    )]
    pub limits: Limits,
    /// Labels, by which lists can be filtered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The encoding of its output: a WHATWG label, or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// How long it is kept after its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retention: RetentionBody,
    /// Whether it outlives its session.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: bool,
    /// Present for a service: the restart policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartPolicy>,
    /// Whether a recognised command becomes a service; absent means that it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceModeBody>,
    /// A terminal of this size instead of pipes.
    #[serde(
        default,
        deserialize_with = "strict::pty",
        skip_serializing_if = "Option::is_none"
    )]
    pub pty: Option<TermSize>,
    /// The only programs that may run, in addition to the daemon's own allow list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Whether the client is the command line (its executions are kept longer than others).
    #[serde(default, skip_serializing_if = "is_default")]
    pub cli: bool,
    /// Whether the client reads the output with `raw?follow=true&lossless=true` from the beginning:
    /// on a full disk the command waits for that reader, for at most 2 s until it connects. Without
    /// it, a full disk stops no command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lossless_reader: bool,
}

/// `POST /api/v1/executions/{id}/again`: what starting a command again requires besides its first
/// request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerunBody {
    /// As [`StartBody::id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ExecutionId>,
    /// The environment of the requesting client; how much of it is passed on is as before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_env: Vec<(ByteString, ByteString)>,
    /// Whether a running one is stopped first, once it is certain that it can start again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stop: bool,
    /// As [`StartBody::approval`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// As [`StartBody::allowed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// As [`StartBody::cli`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub cli: bool,
}

/// The source of standard input.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinBody {
    /// At end of file for commands; open and silent for services.
    #[default]
    Default,
    /// At end of file.
    Empty,
    /// These bytes, then end of file.
    Given(ByteString),
    /// Open until closed by `POST …/input?close=true`.
    Open,
}

/// How long an execution is kept after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionBody {
    /// The configured default.
    #[default]
    Default,
    /// This many milliseconds.
    ForMs(u64),
    /// Until it is cleaned.
    Forever,
}

impl StartBody {
    /// A request with every default.
    #[must_use]
    pub fn new(command: Command, cwd: impl Into<ByteString>) -> Self {
        Self {
            id: None,
            command,
            cwd: cwd.into(),
            stdin: StdinBody::Default,
            base_env: Vec::new(),
            env: Vec::new(),
            inherit_env: None,
            timeout_ms: None,
            idle_ms: None,
            isolation: None,
            confine: SandboxOptionsBody::default(),
            secrets: Vec::new(),
            approval: None,
            place_wait_ms: None,
            limits: Limits::default(),
            labels: Vec::new(),
            description: String::new(),
            encoding: None,
            retention: RetentionBody::Default,
            keep: false,
            restart: None,
            service: None,
            pty: None,
            allowed: None,
            cli: false,
            lossless_reader: false,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The model's types are also stored, where unknown fields of a newer version are ignored; in a
/// request that would silently drop an option.
pub(super) mod strict {
    use ostler_model::{ByteString, Command, Limits, TermSize};
    use serde::{Deserialize, Deserializer};

    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum CommandBody {
        Argv {
            program: ByteString,
            args: Vec<ByteString>,
        },
        Shell {
            shell: ByteString,
            script: ByteString,
        },
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LimitsBody {
        pids: Option<u32>,
        memory_bytes: Option<u64>,
        cpu_millis: Option<u32>,
        open_files: Option<u32>,
        file_bytes: Option<u64>,
        disk_bytes: Option<u64>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SizeBody {
        cols: u16,
        rows: u16,
    }

    pub(super) fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Command, D::Error> {
        Ok(match CommandBody::deserialize(from)? {
            CommandBody::Argv { program, args } => Command::Argv { program, args },
            CommandBody::Shell { shell, script } => Command::Shell { shell, script },
        })
    }

    pub(crate) fn limits<'de, D: Deserializer<'de>>(from: D) -> Result<Limits, D::Error> {
        let body = LimitsBody::deserialize(from)?;
        Ok(Limits {
            pids: body.pids,
            memory_bytes: body.memory_bytes,
            cpu_millis: body.cpu_millis,
            open_files: body.open_files,
            file_bytes: body.file_bytes,
            disk_bytes: body.disk_bytes,
        })
    }

    pub(super) fn pty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TermSize>, D::Error> {
        let body = Option::<SizeBody>::deserialize(from)?;
        Ok(body.map(|SizeBody { cols, rows }| TermSize { cols, rows }))
    }
}
