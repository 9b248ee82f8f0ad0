//! Network and command probes of services.
//!
//! Decisions are made elsewhere; this module runs one
//! [`ProbeRequest`](crate::readiness::ProbeRequest) and reports its result, and listens on notify
//! sockets.

mod exec;
mod http;
mod notify;
mod probe;
#[cfg(test)]
mod probe_tests;
mod tls;

pub(crate) use exec::ExecContext;
pub(crate) use notify::NotifySocket;
pub(crate) use probe::Prober;
