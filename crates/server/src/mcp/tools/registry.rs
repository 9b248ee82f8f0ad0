//! What a tool is, and how it is called.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value};

use crate::mcp::context::ToolCall;
use crate::mcp::reply::{ToolInterrupt, ToolReply};
use crate::params::{Arguments, Parameter};

/// What a call comes to.
pub(in crate::mcp) type ToolResult = Result<ToolReply, ToolInterrupt>;

/// An answer under way.
pub(in crate::mcp) type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// What a tool is to clients, and the function behind it.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct ToolDefinition {
    pub(in crate::mcp) name: &'static str,
    /// For people; empty where the name says the same.
    pub(in crate::mcp) title: &'static str,
    pub(in crate::mcp) about: &'static str,
    pub(in crate::mcp) parameters: &'static [Parameter],
    pub(in crate::mcp) hints: ToolHints,
    /// The schema of its structured answer; only status tools have one.
    pub(in crate::mcp) output: Option<fn() -> Value>,
    /// Carries it out; arguments have been checked.
    pub(in crate::mcp) handler: for<'a> fn(ToolCall<'a>, Arguments) -> ToolFuture<'a>,
}

/// What a client may conclude about a tool's effects.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct ToolHints {
    pub(in crate::mcp) read_only: bool,
    pub(in crate::mcp) destructive: bool,
    pub(in crate::mcp) idempotent: bool,
}

impl ToolHints {
    /// Looks, and changes nothing.
    pub(super) const READ_ONLY: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
    };
    /// Runs whatever it is given.
    pub(super) const EXECUTES: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
    };
    /// Ends or removes what is ours.
    pub(super) const DESTRUCTIVE: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
    };
}

/// Calls a tool with what was given.
pub(in crate::mcp) async fn call_tool(
    tool: &'static ToolDefinition,
    call: ToolCall<'_>,
    values: Map<String, Value>,
) -> ToolResult {
    let arguments = Arguments::check(tool.parameters, values)?;
    (tool.handler)(call, arguments).await
}
