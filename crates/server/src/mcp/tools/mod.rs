//! Every tool, one folder per profile and one file per tool. Tools use
//! [`ToolReply`](super::reply::ToolReply) and [`ApiError`](crate::error::ApiError), never the MCP
//! library.

mod command;
mod core;
mod end_text;
mod interaction;
mod isolation_params;
mod listing;
mod pty;
mod registry;
mod service;
mod shell;
mod tool_list;

pub(super) use registry::{ToolDefinition, ToolResult, call_tool};
pub(super) use tool_list::tools_of;
