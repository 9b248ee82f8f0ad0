//! The network interface: MCP and REST on TCP, behind authentication.
//!
//! [`app`] composes it. A request passes `origin_check` (Host and Origin), `auth` (bearer token →
//! identity), `in_flight` (concurrency), `limits` (size), then `request_identity` (path and headers
//! → session and tools). [`tokens`] stores access tokens, `sessions` ends idle sessions.

mod app;
mod auth;
mod in_flight;
mod limits;
mod options;
mod origin_check;
mod request_identity;
mod session_table;
mod sessions;
mod sse;
pub mod tokens;

pub use app::{AppParts, app, app_with_handler};
pub use in_flight::REQUESTS_PER_PRINCIPAL;
pub use limits::BODY_BYTES;
pub use options::{HttpAccess, HttpOptions, RESUME_MS, SESSION_IDLE_MS};
