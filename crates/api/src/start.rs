//! A request to run a command.

use ostler_model::{
    ByteString, Command, ContextId, ExecutionId, RestartPolicy, StartOptions, TemplateRecord,
    is_default,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parts::{OptionsPlace, OwnFields};
use super::stdin::StdinBody;
use super::strict;

/// `POST /api/v1/executions`. Durations are milliseconds. Only `command` and `cwd` are required;
/// text that is not UTF-8 is passed as `{"base64": "…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
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
    /// What every start may ask for, as fields of this object.
    #[serde(flatten, skip_deserializing)]
    pub options: StartOptions,
    /// Present for a service: the restart policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartPolicy>,
    /// Whether a recognised command becomes a service; absent means that it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceModeBody>,
    /// The command template that the client made `command` from: it is recorded, and where it says
    /// so, a person must agree to the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Box<TemplateRecord>>,
    /// The context that it runs in: `cwd` is its directory or below, and its options and variables
    /// hold for this start, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// Whether the client is the command line (its executions are kept longer than others).
    #[serde(default, skip_serializing_if = "is_default")]
    pub cli: bool,
    /// Whether the client reads the output with `raw?follow=true&lossless=true` from the beginning:
    /// on a full disk the command waits for that reader, for at most 2 s until it connects. Without
    /// it, a full disk stops no command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lossless_reader: bool,
}

/// Whether a started command may become a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceModeBody {
    /// It becomes one where the detection table recognises it.
    Auto,
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
    /// As [`StartOptions::approval`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// As [`StartOptions::allowed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// As [`StartBody::cli`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub cli: bool,
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
            options: StartOptions::default(),
            restart: None,
            service: None,
            template: None,
            context: None,
            cli: false,
            lossless_reader: false,
        }
    }
}

impl Serialize for StartBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for StartBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let place = OptionsPlace {
            after: "base_env",
            without: &[],
        };
        let mut options = StartOptions::default();
        let body = Self::deserialize(OwnFields::new(from, place, &mut options))?;
        Ok(Self { options, ..body })
    }
}
