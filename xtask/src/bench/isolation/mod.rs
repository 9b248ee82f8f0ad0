//! What walls cost: a start at each level, the proxy of an allow list, and the commit of an
//! overlay.

mod commits;
mod egress_proxy;
mod start_latency;
mod suite;

pub(super) use suite::ALL;
