//! Ownership of executions, and the identity of callers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::project_set::{ProjectSet, ProjectView};

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

/// The owner of an execution, which decides who may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The identity that started it.
    pub principal: Principal,
    /// The project that it was started for, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session that it was started in; none once it was passed to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    /// The task that it was started for, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The channel that the request came over.
    #[serde(default, skip_serializing_if = "RequestChannel::is_local")]
    pub channel: RequestChannel,
}

/// The channel that a request came over. It is more specific than the principal: a token can act
/// for the local user.
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
    /// Whether it is the default, which is not serialized.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Local)
    }
}

/// How much a caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The executions of its own session only: agents.
    Session,
    /// All executions of its principal: the command line, the UI, tokens with `sessions:all`.
    Principal,
}

/// The identity of a caller, as its interface established it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The principal, project, session and task of the request.
    pub owner: Owner,
    /// How much it sees.
    pub scope: Scope,
    /// The projects that it is limited to.
    pub projects: ProjectView,
}

impl Caller {
    /// Whether this request may see, or change where it changes something, what `owner` owns. A
    /// session reaches its own executions, and those that were passed to its project.
    #[must_use]
    pub fn can_access(&self, owner: &Owner) -> bool {
        self.is_within(owner, &self.projects.reachable)
    }

    /// Whether the caller sees what `owner` owns, though this request may not change it.
    #[must_use]
    pub fn sees_only(&self, owner: &Owner) -> bool {
        !self.can_access(owner) && self.is_within(owner, &self.projects.visible)
    }

    /// Whether it sees all that its principal owns.
    #[must_use]
    pub fn sees_all(&self) -> bool {
        self.scope == Scope::Principal && self.projects.visible.is_all()
    }

    fn is_within(&self, owner: &Owner, projects: &ProjectSet) -> bool {
        let project = owner.project.as_deref();
        let is_of_caller = project == self.owner.project.as_deref() || !projects.is_all();
        let passed = owner.session.is_none() && project.is_some() && is_of_caller;
        self.owner.principal == owner.principal
            && projects.contains(project)
            && match self.scope {
                Scope::Principal => true,
                Scope::Session => self.owner.session == owner.session || passed,
            }
    }
}
