//! MCP: [`serve`] answers one client on any byte stream until it closes, [`http_routes`] are the
//! routes of many over HTTP, mounted behind authentication.
//!
//! Only this crate knows MCP and JSON schema. Inside it, the `tools` know neither: they use
//! `reply::ToolReply` and [`ApiError`](ostler_interface::error::ApiError), which `to_rmcp` converts.
#![forbid(unsafe_code)]

mod approval;
mod call_context;
mod calls;
mod client;
mod connection_log;
mod elicit;
#[cfg(feature = "conformance-fixtures")]
mod fixtures;
mod form;
mod handler;
mod http_mount;
mod instructions;
mod interrupted;
mod json_rpc;
mod last_line;
mod mcp_app;
mod notifications;
mod options;
mod output;
mod pending_deliveries;
mod planned_start;
mod profile;
mod progress;
mod prompts;
mod read_positions;
mod refusal;
mod reply;
mod request_state;
mod resources;
mod screen;
mod session_hooks;
mod sse;
mod state;
mod stdio;
mod streamable_http;
mod subscriptions;
mod task_origins;
mod tasks;
mod to_rmcp;
mod tool_access;
mod tool_call;
mod tools;
mod wait;
mod wait_many;

pub use client::{ClientContext, ConnectedClient};
#[cfg(feature = "conformance-fixtures")]
pub use fixtures::conformance_routes;
pub use http_mount::{
    McpHttp, McpHttpOptions, McpHttpParts, RESUME_MS, SESSION_IDLE_MS, http_routes,
};
pub use options::{AppPage, McpOptions, Structured, TASK_AFTER_MS};
pub use profile::{GROUPS, PROFILE_WORDS, ToolGroup, ToolSet, UnknownProfile};
pub use state::McpState;
pub use stdio::{McpConnection, ServeError, serve};
