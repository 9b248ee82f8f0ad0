//! Every tool, one folder per profile and one file per tool. Tools use
//! [`ToolReply`](super::reply::ToolReply) and [`ApiError`](ostler_interface::error::ApiError), never the MCP
//! library.

mod command;
mod context;
mod core;
mod execution;
mod history;
mod interaction;
mod listing;
mod params;
mod pty;
mod registry;
mod service;
mod shell;
mod template;
mod tool_list;

pub(super) use registry::{ToolDefinition, ToolResult, call_tool};
pub(super) use tool_list::{find_tool, tool_named, tools_in};
