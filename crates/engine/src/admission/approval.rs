//! Approval of one start by a person: valid once, for exactly the request that was shown.

use std::path::PathBuf;

use ostler_model::{BackendName, ByteString, Command, ContainerOptions, IsolationLevel};
use serde::Serialize;

use super::named_files::NamedFiles;
use crate::interaction_id::InteractionId;
use crate::request::StdinRequest;
use ostler_model::SandboxOptions;

/// How long an approval is valid, in seconds.
pub const CONSENT_S: i64 = 600;

/// The approval that a question asks for. Only a person may give it, never the session that
/// requested the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// The id of the rule that requires it.
    pub rule: String,
    /// The rule's justification.
    pub reason: String,
    /// The whole command line with its variables and input, for people: secrets are redacted, and
    /// control characters are escaped.
    pub command: String,
    /// Exactly what runs once approved.
    #[serde(skip)]
    pub(crate) subject: ApprovalSubject,
}

/// The parts of a request that decide what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalSubject {
    pub(crate) command: Command,
    pub(crate) cwd: ByteString,
    pub(crate) set_env: Vec<(ByteString, ByteString)>,
    pub(crate) inherit_env: Option<bool>,
    pub(crate) stdin: StdinRequest,
    pub(crate) level: Option<IsolationLevel>,
    pub(crate) backend: Option<BackendName>,
    pub(crate) container: Box<ContainerOptions>,
    pub(crate) confine: SandboxOptions,
    pub(crate) secrets: Vec<String>,
    /// The programs and scripts it names.
    pub(crate) files: NamedFiles,
}

impl ApprovalSubject {
    /// Whether both are the same request, whatever the files contain by now.
    pub(crate) fn is_same_request(&self, other: &Self) -> bool {
        let Self {
            command,
            cwd,
            set_env,
            inherit_env,
            stdin,
            level,
            backend,
            container,
            confine,
            secrets,
            files: _,
        } = self;
        (command, cwd, set_env, inherit_env)
            == (
                &other.command,
                &other.cwd,
                &other.set_env,
                &other.inherit_env,
            )
            && (stdin, level, confine, secrets)
                == (&other.stdin, &other.level, &other.confine, &other.secrets)
            && (backend, container) == (&other.backend, &other.container)
    }
}

/// What happens to an existing approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalUse {
    /// It is consumed by this start.
    Consume,
    /// It is only checked.
    Peek,
}

/// The status of the approval of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApprovalStatus {
    /// A person approved it, and this was the one start it is valid for.
    Granted,
    /// A person approved it, and this file has changed since.
    Changed(PathBuf),
    /// A question is open and not answered.
    Open(InteractionId),
    /// The named approval was denied.
    Refused,
    /// No approval was requested yet.
    None,
}
