//! Every tool, one folder per profile and one file per tool. Tools speak in
//! [`Reply`](super::reply::Reply) and [`ApiError`](crate::error::ApiError) and never see the MCP
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
