//! MCP over a byte stream, or over a pair of descriptors that outlives this process.
//!
//! * `lines` and `message`: from bytes to messages; malformed ones are answered.
//! * `request_table`: requests under way, their batches, and the limits.
//! * `connection_log`, `record`, `connection_state`: what the next daemon needs to continue when
//!   this process dies.
//! * `endpoint`: reads into the log and writes from it.
//! * `transport`: the library's transport over all of these; `shared_state` is shared with pending
//!   answers.
//! * `refuse_all`: answers while there is no daemon.
//! * `replay`: restores what an earlier daemon left; `attempt` is attached to each request.

mod attempt;
mod connection_log;
mod connection_state;
mod endpoint;
mod lines;
pub(super) mod message;
mod record;
mod refuse_all;
mod replay;
mod request_table;
mod serve;
mod shared_state;
mod shutdown;
mod transport;

pub(super) use attempt::RequestAttempt;
pub(super) use request_table::IN_FLIGHT;
pub(super) use serve::serve_transport;
pub use serve::{McpConnection, ServeError, serve};
