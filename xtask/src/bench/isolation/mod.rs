//! The cost of isolation: a start at each level, the egress proxy, and the commit of an overlay.

mod commits;
mod egress_proxy;
mod start_latency;
mod suite;

pub(super) use suite::ALL;
