//! The context of a client, and of one tool call.

use std::time::Duration;

use super::call_context::CallContext;
use super::profile::ToolSet;
use super::state::McpState;
use ostler_engine::{Engine, ExecutionInfo, RetentionRequest, StartGuard, StartRequest};
use ostler_model::{ByteString, Caller, Command, IsolationLevel};

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
    /// Its context.
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
    /// The state of the execution with this id.
    pub(super) fn info(&self, id: &str) -> Result<ExecutionInfo, ostler_engine::Error> {
        self.engine.info(self.caller, id)
    }

    /// Publishes the id together with the answer. Tools name executions they start only through
    /// this method.
    pub(super) fn publish_id(&self, start_guard: StartGuard) -> ExecutionInfo {
        self.context.register_start(start_guard)
    }

    /// Records that this answer shows `info`: its end needs no notification.
    pub(super) fn mark_notified(&self, info: &ExecutionInfo) {
        self.state.notifications().mark_notified(self.caller, info);
    }

    /// Offset of the first output this client has not been shown; none where it was shown nothing.
    pub(super) fn unread_from(&self, info: &ExecutionInfo) -> Option<u64> {
        let position = self.state.read_positions().get(self.caller, info.id);
        position.map(|offset| offset.min(info.output_end))
    }

    /// Records that this answer shows a range of output.
    pub(super) fn mark_shown(&self, info: &ExecutionInfo, range: (u64, u64)) {
        let positions = self.state.read_positions();
        positions.advance(self.caller, info.id, range);
    }

    /// A start request with the client's defaults; tools add the call's arguments.
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

    /// Resolves a directory relative to the client's working directory.
    pub(super) fn resolve_directory(&self, path: &str) -> ByteString {
        let path = self.client_context.cwd.as_path().join(path);
        ByteString::from(path)
    }
}
