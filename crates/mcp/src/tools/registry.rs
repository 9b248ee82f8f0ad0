//! The definition of a tool, and its invocation.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value};

use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use ostler_interface::params::{Arguments, Parameter};

/// The result of a call.
pub(crate) type ToolResult = Result<ToolReply, ToolInterrupt>;

/// The future of a call.
pub(crate) type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// What clients see of a tool, and its handler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolDefinition {
    pub(crate) name: &'static str,
    /// The title for people; empty where it is the name.
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) hints: ToolHints,
    /// The schema of its structured content; only status tools have one.
    pub(crate) output: Option<fn() -> Value>,
    /// The handler; its arguments have been validated.
    pub(crate) handler: for<'a> fn(ToolCall<'a>, Arguments) -> ToolFuture<'a>,
}

/// The annotations of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolHints {
    pub(crate) read_only: bool,
    pub(crate) destructive: bool,
    pub(crate) idempotent: bool,
}

impl ToolHints {
    /// Reads, and changes nothing.
    pub(super) const READ_ONLY: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
    };
    /// Runs arbitrary commands.
    pub(super) const EXECUTES: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
    };
    /// Ends or removes the engine's own executions.
    pub(super) const DESTRUCTIVE: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
    };
}

/// Validates the arguments and calls a tool.
pub(crate) async fn call_tool(
    tool: &'static ToolDefinition,
    call: ToolCall<'_>,
    values: Map<String, Value>,
) -> ToolResult {
    let arguments = Arguments::check(tool.parameters, values)?;
    (tool.handler)(call, arguments).await
}
