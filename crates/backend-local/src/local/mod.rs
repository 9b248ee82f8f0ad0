//! The backend of this machine: [`LocalBackend`] acquires a shim for each plan and forwards its
//! events.
//!
//! `backend` implements the interface; `shim_manager` creates and watches shims, `pool` holds the
//! idle ones, `zygote_client` talks to the zygote and `connection` to a shim; `shim_loss`
//! reports what a killed shim ran; `recovery` finds executions of an earlier engine by their
//! `execution_files`, `response_timeout` decides how long zygote and shims may take to respond,
//! `sweep` kills what no shim or zygote can; `snapshot` inspects a
//! running tree, `tree_members` finds its processes, `sockets` its listeners, and those of any
//! process; `connect` opens connections into its network namespace, `disk_quota` measures
//! the growth of its workspace, `usage` reads what many trees use, `overlay` handles requests about its overlay.

mod backend;
mod blocked_on;
mod connect;
mod connection;
mod disk_quota;
mod disk_usage;
mod execution_files;
mod input_waiters;
pub(crate) mod overlay;
mod pool;
mod recovery;
mod response_timeout;
mod shim_loss;
mod shim_manager;
mod snapshot;
mod sockets;
mod stopped_shim;
mod sweep;
mod tree_members;
mod usage;
mod zygote_client;

pub use backend::{BackendOpenError, LocalBackend, ZygoteConfig};
