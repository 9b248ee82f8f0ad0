//! MCP over any byte stream: [`serve`] answers one client until its stream closes.
//!
//! Nobody outside this module sees the MCP library: `handler` and `convert` are its border,
//! and the `tools` speak in `reply::Reply` and [`Failure`](crate::error::Failure).

mod batch;
mod calls;
mod consent;
mod context;
mod convert;
mod desk;
mod elicit;
#[cfg(feature = "conformance-fixtures")]
mod fixtures;
mod glance;
mod handler;
mod http;
mod http_answers;
mod http_batch;
mod http_bodies;
mod http_sessions;
mod instructions;
mod interrupted;
mod leases;
mod link;
mod news;
mod output;
mod profile;
mod progress;
mod read_positions;
mod reply;
mod resources;
mod screen;
mod several;
mod sse;
mod stdio;
mod subscriptions;
mod tasks;
mod tools;
mod waiting;

pub use context::{Client, FrontContext};
pub use desk::{Desk, McpOptions, Structured, TASK_AFTER_MS};
#[cfg(feature = "conformance-fixtures")]
pub use fixtures::conformance_app;
pub use http::{Doorkeeper, Streamable, Streaming, streamable};
pub use profile::{GROUPS, Group, PROFILE_WORDS, ToolSet, UnknownProfile};
pub use sse::{SseError, SseInput, SseOutput, sse};
pub use stdio::{Connection, ServeError, serve};
