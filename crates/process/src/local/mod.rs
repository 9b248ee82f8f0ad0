//! This machine as a place: [`LocalPlace`] finds a shim for each plan and passes on what it
//! tells.
//!
//! `place` is the public face, `supply` where shims come from, `pool` those that wait for
//! plans, `keeper_link` the line to the keeper and `connection` to a shim, `recovery` the
//! way back to what an earlier engine started, `orphans` the end of what has nobody else,
//! `observe` a look at what runs, `members` who that is, `sockets` what listens, `disk` at what a workspace has grown by, `workspace` what was
//! written to an overlay.

mod connection;
mod disk;
mod foreground;
mod keeper_link;
mod members;
mod observe;
mod orphans;
mod place;
mod pool;
mod recovery;
mod sockets;
mod supply;
mod waits;
pub(crate) mod workspace;

pub use place::{Keeper, LocalPlace, OpenError};
