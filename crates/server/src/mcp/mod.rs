//! MCP over any byte stream: [`serve`] answers one client until its stream closes.
//!
//! The MCP library is used only inside this module: `handler` and `to_rmcp` convert at the border,
//! and the `tools` use `reply::ToolReply` and [`ApiError`](crate::error::ApiError).

mod approval;
mod batch;
mod call_context;
mod calls;
mod context;
mod elicit;
#[cfg(feature = "conformance-fixtures")]
mod fixtures;
mod handler;
mod http;
mod http_batch;
mod http_body_check;
mod http_sessions;
mod http_streams;
mod instructions;
mod interrupted;
mod last_line;
mod notifications;
mod output;
mod pending_deliveries;
mod profile;
mod progress;
mod read_positions;
mod reply;
mod resources;
mod screen;
mod sse;
mod state;
mod stdio;
mod subscriptions;
mod tasks;
mod to_rmcp;
mod tools;
mod wait;
mod wait_many;

pub use context::{ClientContext, ConnectedClient};
#[cfg(feature = "conformance-fixtures")]
pub use fixtures::conformance_app;
pub use http::{SessionHooks, StreamableConfig, StreamableHttp, streamable};
pub use profile::{GROUPS, PROFILE_WORDS, ToolGroup, ToolSet, UnknownProfile};
pub use sse::{SseError, SseInput, SseOutput, sse};
pub use state::{McpOptions, McpState, Structured, TASK_AFTER_MS};
pub use stdio::{McpConnection, ServeError, serve};
