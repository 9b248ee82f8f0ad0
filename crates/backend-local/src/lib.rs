//! The local backend: executions as processes of this machine. Implements
//! [`Backend`](ostler_backend::Backend) by [`LocalBackend`].
//!
//! Holds the zygote (process `ostler-keeper`, [`zygote_main`]), which forks shims; the shim, which
//! carries out one plan after another and outlives the daemon; their protocol; and the daemon's side:
//! the pool of shims, recovery, snapshots, sockets. An executable that opens a [`LocalBackend`] with
//! a zygote calls [`zygote_main`] and [`egress_main`] first thing in `main`, where its only argument
//! is [`ZYGOTE_ARGUMENT`] or [`EGRESS_ARGUMENT`].
//!
//! Must never know of services, owners or HTTP, nor of the engine.

pub mod local;
mod proto;
mod shim;
mod sys;
pub mod zygote;

pub use local::{BackendOpenError, LocalBackend, ZygoteConfig};
pub use ostler_egress::{EGRESS_ARGUMENT, egress_main};
pub use zygote::{ZYGOTE_ARGUMENT, zygote_main};
