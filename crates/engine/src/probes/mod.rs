//! Network and command probes of services.
//!
//! Decisions are made elsewhere; this module runs one
//! [`ProbeRequest`](crate::readiness::ProbeRequest) and reports its result, and listens on notify
//! sockets.

mod exec;
#[cfg(test)]
mod exec_tests;
mod greeting;
mod http;
mod notify;
mod probe;
#[cfg(test)]
mod probe_tests;
mod tls;
#[cfg(test)]
mod tls_tests;

pub(crate) use exec::ExecContext;
pub(crate) use notify::NotifySocket;
pub(crate) use probe::Prober;
