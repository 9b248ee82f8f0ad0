//! MCP over a byte stream, or over a pair of descriptors that outlives this process.
//!
//! * `request_table`: requests under way, their batches, and the limits.
//! * `endpoint`: reads into the connection's log and writes from it.
//! * `transport`: the library's transport over all of these; `shared_state` is shared with pending
//!   answers.
//! * `refuse_all`: answers while there is no daemon.
//! * `replay`: restores the state that an earlier daemon left.
//! * `shutdown`: the last answers of a daemon that exits.

mod endpoint;
mod refuse_all;
mod replay;
mod request_table;
mod serve;
mod shared_state;
mod shutdown;
mod transport;

pub(super) use serve::serve_transport;
pub use serve::{McpConnection, ServeError, serve};
