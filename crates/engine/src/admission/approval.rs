//! Approval of one start by a person: valid once, for exactly the request that was shown.

use std::path::PathBuf;

use ostler_model::{BackendName, ByteString, Command, ContainerOptions, IsolationLevel};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

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
    /// The directory that it runs in.
    #[serde(skip)]
    pub(crate) cwd: ByteString,
    /// Exactly what runs once approved; none where that cannot be told again.
    #[serde(skip)]
    pub(crate) covered: Option<CoveredStart>,
}

/// What an approval covers, as it is kept: also for the next engine, which holds to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CoveredStart {
    request: RequestDigest,
    /// The programs and scripts that it names.
    pub(crate) files: NamedFiles,
}

impl CoveredStart {
    /// Whether it is this request, whatever the files contain by now.
    pub(crate) fn is_request(&self, request: &RequestDigest) -> bool {
        self.request == *request
    }
}

/// The SHA-256 of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestDigest([u8; 32]);

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
    /// What an approval of it covers.
    pub(crate) fn covered(&self) -> Option<CoveredStart> {
        Some(CoveredStart {
            request: self.digest()?,
            files: self.files.clone(),
        })
    }

    /// Of everything but the files. None where it cannot be encoded: it equals no other then.
    pub(crate) fn digest(&self) -> Option<RequestDigest> {
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
        let request = (command, cwd, set_env, inherit_env, stdin);
        let isolation = (level, backend, container, confine, secrets);
        let encoded = serde_json::to_vec(&(request, isolation)).ok()?;
        Some(RequestDigest(Sha256::digest(&encoded).into()))
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
    /// A person approved it by this answer, and this was the one start it is valid for.
    Granted(InteractionId),
    /// A person approved it, and that it is consumed cannot be written.
    NotWritten {
        /// The file.
        path: PathBuf,
        /// The cause, for people.
        problem: String,
    },
    /// A person approved it, and this file has changed since.
    Changed(PathBuf),
    /// A question is open and not answered.
    Open(InteractionId),
    /// The named approval was denied.
    Refused,
    /// No approval was requested yet.
    None,
}
