//! What clients see of a context.

use std::time::Duration;

use ostler_lifecycle::context::ContextState;
use ostler_model::{ByteString, ContextId, ExecutionId, IsolationLevel, Limits, Owner, Timestamp};

/// A context as a client sees it. Variables are in it by name only, and so are secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextInfo {
    /// Its id.
    pub id: ContextId,
    /// Its project.
    pub project: String,
    /// Its task, if it has one.
    pub task: Option<String>,
    /// Whose it is.
    pub owner: Owner,
    /// The absolute directory that its executions work in.
    pub directory: ByteString,
    /// Whether Ostler created the directory, and removes it with the context.
    pub is_directory_created: bool,
    /// Its state.
    pub state: ContextState,
    /// The executions that use it, oldest first.
    pub executions: Vec<ExecutionId>,
    /// The names of its variables.
    pub variables: Vec<ByteString>,
    /// The names of its secrets.
    pub secrets: Vec<String>,
    /// The isolation level of its executions; none is that of the settings.
    pub level: Option<IsolationLevel>,
    /// The limits of its executions.
    pub limits: Limits,
    /// The time limit of its executions.
    pub timeout: Duration,
    /// When it ends without use.
    pub idle_timeout: Duration,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its last use began or ended.
    pub used_at: Timestamp,
    /// When it ends if nothing uses it before; none while it is in use.
    pub ends_at: Option<Timestamp>,
}
