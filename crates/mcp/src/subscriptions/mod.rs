//! Subscriptions of both eras: `subscriptions/listen` (`listen`), and `resources/subscribe` and log
//! messages of the handshake era ([`SubscribedConnection`]).
//!
//! Every subscription is its own loop (`resource_watch`): wait until the resource differs from what
//! was last sent, wait until a second has passed since then, send, and wait again. Nothing is
//! queued, so a client that does not read holds up one notification per subscription and never
//! misses the last state.

mod connection;
mod listen;
mod resource_watch;
mod update_sink;

pub(super) use connection::SubscribedConnection;
pub(super) use listen::{accepted_filter, listen};
