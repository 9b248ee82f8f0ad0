//! Listening sockets: reading them from the kernel, finding their owners, connecting to them.

mod connect;
mod diag;
mod listen_tables;
mod port_holders;
mod tree_listeners;

pub(super) use connect::connect;
pub(super) use listen_tables::{ListenTables, NetnsDiagCache};
pub(super) use port_holders::port_holders;
pub(super) use tree_listeners::{ListeningSockets, SocketQuery, SocketScanCache, find_listeners};
