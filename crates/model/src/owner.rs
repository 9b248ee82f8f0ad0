//! Who an execution belongs to, and who is asking.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An authenticated identity: a Unix user on the local socket, a token's subject on HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Principal(pub String);

impl Principal {
    /// The principal of a Unix user (peer credential).
    #[must_use]
    pub fn unix(uid: u32) -> Self {
        Self(format!("uid:{uid}"))
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A named handle that several requests share (`--session NAME`, header `Ostler-Session`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionName(pub String);

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who may see an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The identity that started it.
    pub principal: Principal,
    /// The project it was started for, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session it was started in; none once it was passed to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    /// The task it was started for, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// By which way it was asked for.
    #[serde(default, skip_serializing_if = "RequestChannel::is_local")]
    pub channel: RequestChannel,
}

/// By which way a request came. It says more than the principal: a token can speak for the
/// local user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestChannel {
    /// The unix socket of this user's daemon, or the same process.
    #[default]
    Local,
    /// HTTP, with a token or without one.
    Network,
}

impl RequestChannel {
    /// Whether nothing needs to be written down of it.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Local)
    }
}

/// How far a caller sees (D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only the executions of its own session: agents.
    Session,
    /// Everything of its principal: the command line, the UI, tokens with `sessions:all`.
    Principal,
}

/// Who is asking, as the face established it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Identity, project, session and task of the request.
    pub owner: Owner,
    /// How far it sees.
    pub scope: Scope,
}

impl Caller {
    /// Whether this caller may see and touch what `owner` owns (D3). A session sees its own,
    /// and what was passed to its project.
    #[must_use]
    pub fn sees(&self, owner: &Owner) -> bool {
        let passed = owner.session.is_none()
            && owner.project.is_some()
            && owner.project == self.owner.project;
        self.owner.principal == owner.principal
            && match self.scope {
                Scope::Principal => true,
                Scope::Session => self.owner.session == owner.session || passed,
            }
    }
}
