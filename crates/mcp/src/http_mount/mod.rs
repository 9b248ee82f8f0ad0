//! MCP over HTTP as routes: `routes` mounts the transports, `request_target` derives session and
//! tools from path and headers, `sessions` ends idle sessions, `sse_routes` is the transport of
//! 2024-11-05.

mod options;
mod request_target;
mod routes;
mod session_prefix;
mod session_table;
mod sessions;
mod sse_routes;

pub use options::{McpHttpOptions, RESUME_MS, SESSION_IDLE_MS};
#[cfg(feature = "conformance-fixtures")]
pub(crate) use routes::http_routes_with_handler;
pub use routes::{McpHttp, McpHttpParts, http_routes};
