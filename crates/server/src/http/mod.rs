//! The network face: MCP and REST on TCP, behind one door.
//!
//! [`app`] puts it together. A request passes `guard` (Host and Origin), `auth` (bearer token
//! → identity), `in_flight` (how many), `limits` (how large), then `visit` (path and headers → session and tools).
//! [`tokens`] keeps who may come in, `sessions` ends what nobody comes back to.

mod app;
mod auth;
mod guard;
mod in_flight;
mod limits;
mod options;
mod sessions;
mod sse;
mod table;
pub mod tokens;
mod visit;

pub use app::{Parts, app, app_over};
pub use in_flight::REQUESTS_OF_ONE;
pub use limits::BODY_BYTES;
pub use options::{Access, HttpOptions, RESUME_MS, SESSION_IDLE_MS};
