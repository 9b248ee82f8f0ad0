//! Looks outward: the one client of probes (E3), and later of webhooks.
//!
//! Decisions are made elsewhere; this carries out one [`ProbeOrder`](crate::readiness::ProbeOrder)
//! and says how it ended, and listens on notify sockets.

mod exec;
mod http;
mod notify;
mod probe;
#[cfg(test)]
mod probe_tests;
mod tls;

pub(crate) use exec::ExecProbe;
pub(crate) use notify::NotifySocket;
pub(crate) use probe::Prober;
