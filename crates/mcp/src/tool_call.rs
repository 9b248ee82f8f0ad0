//! What a tool call works with: the engine, the caller, the client, and the request itself.

use std::future::Future;

use super::call_context::CallContext;
use super::client::ClientContext;
use super::progress::ProgressTarget;
use super::state::McpState;
use ostler_engine::{Engine, ExecutionInfo, RetentionRequest, StartGuard, StartRequest};
use ostler_interface::project_access::ProjectAccess;
use ostler_model::{ByteString, Caller, Command};

/// What one tool call works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    pub(super) access: &'a ProjectAccess,
    pub(super) client_context: &'a ClientContext,
    pub(super) state: &'a McpState,
    pub(super) context: &'a CallContext<'a>,
}

impl ToolCall<'_> {
    /// The state of the execution with this id.
    pub(super) fn info(&self, id: &str) -> Result<ExecutionInfo, ostler_engine::Error> {
        self.engine.info(self.caller, id)
    }

    /// Awaits the future and meanwhile reports the execution's progress if the client requested it.
    pub(super) async fn run_with_progress<T>(
        self,
        target: ProgressTarget<'_>,
        waiting: impl Future<Output = T>,
    ) -> T {
        let Some(reporter) = self.context.progress_reporter() else {
            return waiting.await;
        };
        let reports = reporter.run(self.engine, self.caller, self.context.peer(), target);
        tokio::select! {
            biased;
            output = waiting => output,
            never = reports => match never {},
        }
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
    pub(super) fn mark_shown(&self, info: &ExecutionInfo, from: u64, to: u64) {
        let positions = self.state.read_positions();
        positions.advance(self.caller, info.id, from, to);
    }

    /// A start request with the client's defaults; tools add the call's arguments.
    pub(super) fn start_request(&self, command: Command, directory: &str) -> StartRequest {
        let mut request = StartRequest::new(command, self.resolve_directory(directory));
        request.base_env.clone_from(&self.client_context.env);
        request
            .options
            .allowed
            .clone_from(&self.client_context.allowed);
        request
            .options
            .encoding
            .clone_from(&self.client_context.encoding);
        request.options.level = self.client_context.isolation;
        if let Some(retention) = self.client_context.retention {
            request.options.retention = RetentionRequest::For(retention);
        }
        request
    }

    /// Resolves a directory relative to the client's working directory.
    pub(super) fn resolve_directory(&self, path: &str) -> ByteString {
        let path = self.client_context.cwd.as_path().join(path);
        ByteString::from(path)
    }
}
