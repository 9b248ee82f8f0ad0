//! The egress proxy: what a jail whose network is an allow list can connect to, and how its ports
//! are reached from outside.
//!
//! Holds the proxy process itself (role [`EGRESS_ARGUMENT`], started by the process that built the
//! jail), the client that starts and controls it ([`EgressClient`]), the rules it enforces, its DNS
//! server and the log of its decisions. Must never know of executions, journals, backends or the
//! engine: it gets namespaces, rules and a log file.
//!
//! One process per execution (comm `ostler-gate`), started by the shim and ended with it or with
//! the jail's init; it does not depend on the daemon. Its **network-namespace helper** (comm
//! `ostler-netns`), a child forked before any thread exists, enters the jail's user and network
//! namespaces and creates what can only be created there (`netns_helper`):
//!
//! * a second network namespace, the proxy's own, joined to the jail's by a veth pair. The jail
//!   gets routes to `198.18.0.0/16` and to the networks of the rules, and to nothing else
//!   (`ENETUNREACH`); in the proxy's namespace all of these are local and the proxy listens, on
//!   the rules' ports only (anything else is `ECONNREFUSED`). So the proxy takes no port of the
//!   jail's own, and programs without proxy support work.
//! * sockets of the jail's namespace, for connections from outside to servers inside.
//!
//! Modules: `client` is the side of the starting process; `protocol` the messages; `rules` decides
//! on names and addresses (pure); `fake_ip` assigns fake addresses; `dns` reads and writes DNS
//! messages (pure), `dns_server` serves them; `outbound` decides on connections out of the jail,
//! `upstream` resolves and connects, `relay` moves bytes; `inbound` serves connections into the
//! jail; `decision_log` writes the decisions; `netlink` sets up interfaces; `proxy` is what all
//! its tasks share, `server` the process.
//!
//! A proxy without rules makes no network namespace: with network none, the shim starts one on
//! demand ([`EgressConfig`] with no hosts) when a port inside is to be reached
//! ([`EgressClient::request_connection`] for one connection, [`EgressClient::request_forward`] for a
//! port of the host's loopback) and keeps it with the execution. A forwarded port can be reached by
//! every user of the host, like any server on loopback; and what listens inside is the command's,
//! so it is opened on request only.
//!
//! # Conditions for a name or an address
//!
//! 1. A rule means the name, or the address where it was connected to as such; and the port.
//! 2. Where it leads must be public: private, loopback, link-local, shared, metadata,
//!    multicast, documentation and reserved ranges, and addresses of IPv4 wrapped in IPv6, are
//!    refused unless a rule names a network *within* that range (`0.0.0.0/0` means the public
//!    internet, `10.0.0.0/8` the private network).
//! 3. An address of this machine's own, public or not, must be named as a single address.
//!
//! Names are resolved by the host when a connection is made, and keep their address for the TTL of
//! the answer: the checked address is the one that is connected to. With a wildcard rule a command
//! can send information to the server of that zone, in the names it queries.
#![forbid(unsafe_code)]

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
mod proxy;
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
