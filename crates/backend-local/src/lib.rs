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
//!
//! Beside the backend there are helpers for the daemon's own process, which its engine and program
//! share with it: the limit on open files ([`open_files`]), directories nobody else can replace
//! ([`private_dir`]), waiting for a pidfd ([`wait_exit`]), and what the process holds of memory,
//! environment and descriptors.

#[expect(unsafe_code, reason = "close_range(2)")]
mod cloexec;
#[expect(unsafe_code, reason = "environ(7)")]
mod environ;
pub mod local;
pub mod open_files;
mod pidfd;
pub mod private_dir;
mod proto;
mod shim;
mod sys;
pub mod zygote;

pub use cloexec::set_cloexec_on_all;
pub use environ::scrub_variables;
pub use local::{BackendOpenError, LocalBackend, ZygoteConfig};
pub use ostler_egress::async_fd::register as register_descriptor;
pub use ostler_egress::{EGRESS_ARGUMENT, egress_main};
pub use pidfd::wait_exit;
pub use sys::heap::{keep_freed_memory, trim_heap, unmap_program};
pub use zygote::{ZYGOTE_ARGUMENT, zygote_main};
