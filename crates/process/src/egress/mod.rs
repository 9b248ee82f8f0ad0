//! The egress proxy: what a jail whose network is an allow list can reach outside, and how its
//! ports are reached from outside.
//!
//! One process per execution (role [`EGRESS_ARGUMENT`], comm `ostler-gate`), started by the shim
//! and ended with it or with the jail's init; the daemon may come and go. Its **namespace helper**
//! (comm `ostler-ear`), a child forked before any thread exists, enters the jail's user and network
//! namespaces and makes what only can be made there (`netns_helper`):
//!
//! * a **proxy namespace**: a second network namespace, joined to the jail's by a pair of virtual
//!   interfaces. The jail gets routes to `198.18.0.0/16` and to the networks of the rules, and to
//!   nothing else (`ENETUNREACH`); in the proxy namespace all of these are local and the proxy
//!   listens, on the rules' ports only (anything else is `ECONNREFUSED`). So the proxy occupies no
//!   port of the jail, and programs without proxy support work.
//! * sockets of the jail's namespace, for connections from outside to servers inside.
//!
//! The parts: `client` is the shim's side; `protocol` the messages; `rules` decides on names and
//! addresses (pure); `fake_ip` assigns fake addresses; `dns` parses and writes DNS messages (pure),
//! `dns_server` serves them; `outbound` checks a connection, `upstream` resolves and dials, `relay`
//! copies bytes; `inbound` connects into the jail; `decision_log` writes the decisions; `netlink`
//! sets up interfaces; `server` is the main loop.
//!
//! A proxy without rules makes no proxy namespace: with network none, the shim starts one on demand
//! ([`EgressConfig`] with no hosts) when a port inside is to be reached
//! ([`EgressClient::request_connection`] for one connection, [`EgressClient::request_forward`] for
//! a port of the host's loopback) and keeps it with the execution. A forwarded port can be reached
//! by every user of the host, like any server on loopback; and what listens inside is the
//! command's, so it is opened on request only.
//!
//! # What a connection must satisfy
//!
//! 1. A rule allows the name, or the address where the program connected to one directly; and the
//!    port.
//! 2. The destination must be public: private, loopback, link-local, shared, metadata, multicast,
//!    documentation and reserved ranges, and IPv4 addresses wrapped in IPv6, are refused unless a
//!    rule names a network *within* that range (`0.0.0.0/0` means the public internet, `10.0.0.0/8`
//!    the private network).
//! 3. An address of this machine's own, public or not, must be named as a single address.
//!
//! Names are resolved by the host when a connection is made, and the result is kept for the time to
//! live of an answer: the address that was checked is the one that is dialled. With a wildcard a
//! command can pass information to the owner of that zone, by the names it queries.

mod client;
mod decision_log;
mod dns;
mod dns_server;
mod fake_ip;
mod inbound;
mod netlink;
mod netns_helper;
mod outbound;
mod protocol;
mod relay;
mod rules;
mod server;
mod upstream;

pub use client::{
    EGRESS_ARGUMENT, EgressClient, EgressConfig, EgressError, EgressResponse, JailNamespaces,
    NAMESERVER,
};
pub use protocol::{EgressCounts, EgressStep};
pub use server::{egress_main, egress_main_with};
pub use upstream::{Resolve, ResolveFuture, Upstream};
