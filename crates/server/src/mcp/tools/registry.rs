//! The definition of a tool, and its invocation.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value};

use crate::mcp::context::ToolCall;
use crate::mcp::reply::{ToolInterrupt, ToolReply};
use crate::params::{Arguments, Parameter};

/// The result of a call.
pub(in crate::mcp) type ToolResult = Result<ToolReply, ToolInterrupt>;

/// The future of a call.
pub(in crate::mcp) type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// What clients see of a tool, and its handler.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct ToolDefinition {
    pub(in crate::mcp) name: &'static str,
    /// The title for people; empty where the name says the same.
    pub(in crate::mcp) title: &'static str,
    pub(in crate::mcp) about: &'static str,
    pub(in crate::mcp) parameters: &'static [Parameter],
    pub(in crate::mcp) hints: ToolHints,
    /// The schema of its structured content; only status tools have one.
    pub(in crate::mcp) output: Option<fn() -> Value>,
    /// The handler; its arguments have been validated.
    pub(in crate::mcp) handler: for<'a> fn(ToolCall<'a>, Arguments) -> ToolFuture<'a>,
}

/// The annotations of a tool.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct ToolHints {
    pub(in crate::mcp) read_only: bool,
    pub(in crate::mcp) destructive: bool,
    pub(in crate::mcp) idempotent: bool,
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
pub(in crate::mcp) async fn call_tool(
    tool: &'static ToolDefinition,
    call: ToolCall<'_>,
    values: Map<String, Value>,
) -> ToolResult {
    let arguments = Arguments::check(tool.parameters, values)?;
    (tool.handler)(call, arguments).await
}
