//! Approval of one start by a person: valid once, for exactly the request that was shown.

use std::path::PathBuf;

use ostler_model::{ByteString, Command, IsolationLevel};
use serde::Serialize;

use super::named_files::NamedFiles;
use crate::interaction::InteractionId;
use crate::request::{SandboxOptions, StdinRequest};

/// How long a person's yes holds, in seconds.
pub const CONSENT_S: i64 = 600;

/// What a question asks consent to. Only a person answers it, never the session that asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// The rule that asks.
    pub rule: String,
    /// Its justification.
    pub reason: String,
    /// The command line with its variables and its input, whole, for people: secrets are
    /// concealed, and what a terminal would obey is written out.
    pub command: String,
    /// What exactly runs on a yes.
    #[serde(skip)]
    pub(crate) subject: ApprovalSubject,
}

/// Everything of a request that decides what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalSubject {
    pub(crate) command: Command,
    pub(crate) cwd: ByteString,
    pub(crate) set_env: Vec<(ByteString, ByteString)>,
    pub(crate) inherit_env: Option<bool>,
    pub(crate) stdin: StdinRequest,
    pub(crate) level: Option<IsolationLevel>,
    pub(crate) confine: SandboxOptions,
    pub(crate) secrets: Vec<String>,
    /// The programs and scripts it names.
    pub(crate) files: NamedFiles,
}

impl ApprovalSubject {
    /// Whether both ask for the same, whatever the files hold by now.
    pub(crate) fn is_same_request(&self, other: &Self) -> bool {
        let Self {
            command,
            cwd,
            set_env,
            inherit_env,
            stdin,
            level,
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
    }
}

/// What becomes of a yes that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalUse {
    /// It is good for this start, and for no other.
    Consume,
    /// Somebody only wants to know whether it is there.
    Peek,
}

/// How consent to a start stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApprovalStatus {
    /// A person said yes, and this was the one start it is for.
    Granted,
    /// A person said yes, and this file is no longer what they agreed to.
    Changed(PathBuf),
    /// A person was asked and has not answered.
    Open(InteractionId),
    /// The approval that was named was answered with no.
    Refused,
    /// Nobody was asked yet.
    None,
}
