//! What a front brings along, and what one call sees.

use std::time::Duration;

use super::call_context::CallContext;
use super::profile::ToolSet;
use super::state::McpState;
use ostler_engine::{Engine, ExecutionInfo, RetentionRequest, StartGuard, StartRequest};
use ostler_model::{ByteString, Caller, Command, IsolationLevel};

/// What the front of a client told in its hello.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientContext {
    /// Its working directory; relative directories in calls start here.
    pub cwd: ByteString,
    /// Its environment, of which D8 keeps the base names.
    pub env: Vec<(ByteString, ByteString)>,
    /// The tools it is offered.
    pub tools: ToolSet,
    /// The only programs it may run, besides what the engine's own list says.
    pub allowed: Option<Vec<String>>,
    /// The encoding of starts that name none; none takes the engine's.
    pub encoding: Option<String>,
    /// How long what it starts is kept after its end; none takes the engine's.
    pub retention: Option<Duration>,
    /// How far starts that do not say are walled off; none takes the engine's setting.
    pub isolation: Option<IsolationLevel>,
}

/// Who is at the other end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedClient {
    /// Its identity, and the session it speaks for.
    pub caller: Caller,
    /// What it brought along.
    pub context: ClientContext,
}

/// What one tool call works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    pub(super) client_context: &'a ClientContext,
    pub(super) state: &'a McpState,
    pub(super) context: &'a CallContext<'a>,
}

impl ToolCall<'_> {
    /// What is known of the execution with this id.
    pub(super) fn info(&self, id: &str) -> Result<ExecutionInfo, ostler_engine::Error> {
        self.engine.info(self.caller, id)
    }

    /// The answer names its id: with the answer it is given out. Tools give out what they
    /// began only through this.
    pub(super) fn publish_id(&self, start_guard: StartGuard) -> ExecutionInfo {
        self.context.register_start(start_guard)
    }

    /// This answer shows `info`: its end need not be told again.
    pub(super) fn mark_notified(&self, info: &ExecutionInfo) {
        self.state.notifications().mark_notified(self.caller, info);
    }

    /// Where the output begins that this client was not shown yet; none where it was shown
    /// nothing.
    pub(super) fn unread_from(&self, info: &ExecutionInfo) -> Option<u64> {
        let position = self.state.read_positions().get(self.caller, info.id);
        position.map(|offset| offset.min(info.output_end))
    }

    /// This answer shows a stretch of output.
    pub(super) fn mark_shown(&self, info: &ExecutionInfo, range: (u64, u64)) {
        let positions = self.state.read_positions();
        positions.advance(self.caller, info.id, range);
    }

    /// A start with what the front brings to each of its starts; tools add what was asked.
    pub(super) fn start_request(&self, command: Command, directory: &str) -> StartRequest {
        let mut request = StartRequest::new(command, self.resolve_directory(directory));
        request.base_env.clone_from(&self.client_context.env);
        request.allowed.clone_from(&self.client_context.allowed);
        request.encoding.clone_from(&self.client_context.encoding);
        request.level = self.client_context.isolation;
        if let Some(retention) = self.client_context.retention {
            request.retention = RetentionRequest::For(retention);
        }
        request
    }

    /// A directory as the front sees it.
    pub(super) fn resolve_directory(&self, path: &str) -> ByteString {
        let path = self.client_context.cwd.as_path().join(path);
        ByteString::from(path)
    }
}
