//! The front: what an MCP client starts. It hands its standard streams to the daemon and
//! sleeps; when the daemon dies, it finds or starts the next one and hands them over again.
//!
//! No runtime and no threads here, unless a stream cannot be handed over and is relayed, or no
//! daemon can be started and the front answers requests with that.

mod control;
mod relay;
mod session;
mod streams;

pub(crate) use session::{StdioProxy, run};
