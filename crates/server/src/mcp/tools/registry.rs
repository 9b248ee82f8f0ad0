//! Which tools there are, in the order clients see them.

use serde_json::{Map, Value};

use super::{
    command_bg_start, command_execute, command_ps_clean, command_ps_detail, command_ps_list,
    command_ps_logs, command_ps_stop,
};
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::params::{Arguments, Parameter};

/// One tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) enum Tool {
    Execute,
    Start,
    List,
    Stop,
    Logs,
    Clean,
    Detail,
}

/// Every tool, in the order of `tools/list`.
pub(in crate::mcp) const TOOLS: [Tool; 7] = [
    Tool::Execute,
    Tool::Start,
    Tool::List,
    Tool::Stop,
    Tool::Logs,
    Tool::Clean,
    Tool::Detail,
];

/// What a tool is to clients.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct Definition {
    pub(in crate::mcp) name: &'static str,
    pub(in crate::mcp) title: &'static str,
    pub(in crate::mcp) about: &'static str,
    pub(in crate::mcp) parameters: &'static [Parameter],
    pub(in crate::mcp) hints: Hints,
    /// The schema of its structured answer; only status tools have one (F6).
    pub(in crate::mcp) output: Option<fn() -> Value>,
}

/// What a client may conclude about a tool's effects.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp) struct Hints {
    pub(in crate::mcp) read_only: bool,
    pub(in crate::mcp) destructive: bool,
    pub(in crate::mcp) idempotent: bool,
    pub(in crate::mcp) open_world: bool,
}

impl Hints {
    /// Looks, and changes nothing.
    pub(super) const READS: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };
    /// Runs whatever it is given.
    pub(super) const RUNS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
    };
    /// Ends or removes what is ours.
    pub(super) const ENDS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };
}

impl Tool {
    /// The tool with this name.
    pub(in crate::mcp) fn named(name: &str) -> Option<Self> {
        TOOLS
            .into_iter()
            .find(|tool| tool.definition().name == name)
    }

    /// What it is to clients.
    pub(in crate::mcp) const fn definition(self) -> &'static Definition {
        match self {
            Self::Execute => &command_execute::DEFINITION,
            Self::Start => &command_bg_start::DEFINITION,
            Self::List => &command_ps_list::DEFINITION,
            Self::Stop => &command_ps_stop::DEFINITION,
            Self::Logs => &command_ps_logs::DEFINITION,
            Self::Clean => &command_ps_clean::DEFINITION,
            Self::Detail => &command_ps_detail::DEFINITION,
        }
    }
}

/// Calls a tool with what was given.
pub(in crate::mcp) async fn call(tool: Tool, call: Call<'_>, given: Map<String, Value>) -> Reply {
    let arguments = match Arguments::check(tool.definition().parameters, given) {
        Ok(arguments) => arguments,
        Err(bad) => return bad.into(),
    };
    let reply = match tool {
        Tool::Execute => command_execute::call(call, arguments).await,
        Tool::Start => command_bg_start::call(call, arguments).await,
        Tool::List => Ok(command_ps_list::call(call, arguments)),
        Tool::Stop => command_ps_stop::call(call, arguments).await,
        Tool::Logs => command_ps_logs::call(call, arguments).await,
        Tool::Clean => command_ps_clean::call(call, arguments).await,
        Tool::Detail => command_ps_detail::call(call, arguments),
    };
    reply.unwrap_or_else(Reply::from)
}
