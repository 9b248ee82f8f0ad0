//! MCP over a byte stream, or over a pair of descriptors that outlives this process.
//!
//! * `lines` and `message`: from bytes to messages; what is malformed is answered.
//! * `table`: requests under way, their batches, and the limits.
//! * `log`, `record`, `backlog`: what the next service needs to go on when this process dies.
//! * `endpoint`: reads into the log and writes from it.
//! * `transport`: all of it as the library's transport; `shared` is what answers under way need.
//! * `refuse`: answers while there is no service.
//! * `replay`: what an earlier service left; `attempt` travels with each request.

mod attempt;
mod backlog;
mod endpoint;
mod lines;
mod log;
pub(super) mod message;
mod record;
mod refuse;
mod replay;
mod serve;
mod shared;
mod shutdown;
mod table;
mod transport;

pub(super) use attempt::Attempt;
pub(super) use serve::over;
pub use serve::{Connection, ServeError, serve};
pub(super) use table::IN_FLIGHT;
