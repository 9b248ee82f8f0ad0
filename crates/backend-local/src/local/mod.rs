//! This machine as a place: [`LocalBackend`] finds a shim for each plan and passes on what it
//! tells.
//!
//! `backend` is the public face, `shim_manager` where shims come from, `pool` those that wait for
//! plans, `zygote_client` the line to the zygote and `connection` to a shim, `recovery` the
//! way back to what an earlier engine started, `sweep` the end of what has nobody else,
//! `snapshot` a look at what runs, `tree_members` who that is, `sockets` what listens, `disk_quota` at what a workspace has grown by, `overlay` what was
//! written to an overlay.

mod backend;
mod blocked_on;
mod connection;
mod disk_quota;
mod input_waiters;
pub(crate) mod overlay;
mod pool;
mod recovery;
mod shim_manager;
mod snapshot;
mod sockets;
mod sweep;
mod tree_members;
mod zygote_client;

pub use backend::{BackendOpenError, LocalBackend, ZygoteConfig};
