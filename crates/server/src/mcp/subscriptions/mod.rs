//! Subscriptions of both eras: `subscriptions/listen` (`listen`), and `resources/subscribe`
//! and log messages of the handshake era ([`Connection`]).
//!
//! Every subscription is a loop of its own (`follow`): wait until the resource differs from
//! what was told, wait until a second has passed since then, tell, and wait again. Nothing is
//! queued, so a client that does not read holds up one notification per subscription and
//! never misses the last state.

mod connection;
mod follow;
mod listen;
mod outlet;

pub(super) use connection::Connection;
pub(super) use listen::{accepted, listen};
