//! Looks outward: the one client of probes (E3), and later of webhooks.
//!
//! Decisions are made elsewhere; this carries out one [`ProbeRequest`](crate::readiness::ProbeRequest)
//! and says how it ended, and listens on notify sockets.

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
