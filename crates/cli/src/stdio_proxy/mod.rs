//! The stdio proxy, the process that an MCP client starts. It passes its standard streams to the
//! daemon and waits; when the daemon dies, it finds or starts the next one and passes them again.
//!
//! No runtime and no threads here, unless a stream cannot be passed and is relayed, or no daemon
//! can be started and the proxy answers requests with that error.

mod control;
mod relay;
mod session;
mod streams;

pub(crate) use session::{StdioProxy, run};
