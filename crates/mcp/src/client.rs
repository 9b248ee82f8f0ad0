//! The client of a request: its identity, and what it declared when it connected.

use std::time::Duration;

use super::profile::ToolSet;
use ostler_interface::project_access::ProjectAccess;
use ostler_model::{ByteString, Caller, IsolationLevel};

/// What the client's stdio proxy announced in its hello message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientContext {
    /// Its working directory, against which relative directories in calls are resolved.
    pub cwd: ByteString,
    /// Its environment, of which only the base variables are passed on to commands.
    pub env: Vec<(ByteString, ByteString)>,
    /// The tools it is offered.
    pub tools: ToolSet,
    /// The only programs it may run, in addition to the engine's own allow list.
    pub allowed: Option<Vec<String>>,
    /// The encoding of starts that name none; none means the engine's default.
    pub encoding: Option<String>,
    /// How long its executions are kept after their end; none means the engine's default.
    pub retention: Option<Duration>,
    /// The isolation of starts that name none; none means the engine's setting.
    pub isolation: Option<IsolationLevel>,
}

/// The client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedClient {
    /// Its identity, and the session it acts for.
    pub caller: Caller,
    /// What it may do in projects.
    pub access: ProjectAccess,
    /// Its context.
    pub context: ClientContext,
}
