//! The gate: what a cell whose network is an allow list reaches of the world, and how its
//! ports are reached from outside.
//!
//! One process per execution (role [`EGRESS_ARGUMENT`], comm `ostler-gate`), started by the shim
//! and ended with it or with the cell's warden; the daemon may come and go. Its **ear**, a
//! child forked before any thread exists, enters the cell's user and network namespaces and
//! makes what only can be made there (`netns_helper`):
//!
//! * an **antechamber**: a second network namespace, joined to the cell's by a pair of virtual
//!   interfaces. The cell gets routes to `198.18.0.0/16` and to the networks of the rules, and
//!   to nothing else (`ENETUNREACH`); in the antechamber all of these are local and the gate
//!   listens, on the rules' ports only (anything else is `ECONNREFUSED`). So nothing of the
//!   gate takes a port of the cell's own, and programs that know no proxy work.
//! * sockets of the cell's namespace, for connections from outside to servers inside.
//!
//! The parts: `client` is the shim's side; `protocol` the messages; `rules` decides on names and
//! addresses (pure); `fake_ip` hands out fake addresses; `dns` reads and writes DNS messages
//! (pure), `dns_server` serves them; `outbound`(mod@carry) judges, `upstream` resolves and
//! dials, `relay`(mod@splice) moves bytes; `inbound`(mod@forward) is the way in; `decision_log`(mod@log) writes the decisions; `netlink` sets up interfaces; `server`(mod@serve)
//! holds it all together.
//!
//! A gate without rules makes no antechamber: with network none, the shim starts one on demand
//! (`EgressConfig` with no hosts) when a port inside is to be reached ([`EgressClient::request_connection`] for
//! one connection, [`EgressClient::inbound`] for a port of the host's loopback) and keeps it with
//! the execution. A forwarded port can be reached by every user of the host, like any server
//! on loopback; and what listens inside is the command's, so it is opened on request only.
//!
//! # What a name or an address must pass
//!
//! 1. A rule means the name, or the address where it was connected to as such; and the port.
//! 2. Where it leads must be public: private, loopback, link-local, shared, metadata,
//!    multicast, documentation and reserved ranges, and addresses of IPv4 wrapped in IPv6, are
//!    refused unless a rule names a network *within* that range (`0.0.0.0/0` means the public
//!    internet, `10.0.0.0/8` the private network).
//! 3. An address of this machine's own, public or not, must be named as a single address.
//!
//! Names are resolved by the host when a connection is made, and keep what they mean for the
//! answer's life: what was judged is what is dialled. With a wildcard a command can tell
//! something to whoever serves that zone, by the names it asks for.

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
