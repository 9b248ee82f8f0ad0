//! Listening sockets: reading them from the kernel, finding their owners and their namespaces.

mod connect_namespace;
mod diag;
mod listen_tables;
mod port_holders;
mod tree_listeners;

pub(super) use connect_namespace::{ConnectNamespace, connect_namespace};
pub(super) use listen_tables::{ListenTables, NetnsDiagCache};
pub(super) use port_holders::port_holders;
pub(super) use tree_listeners::{ListeningSockets, SocketQuery, SocketScanCache, find_listeners};
