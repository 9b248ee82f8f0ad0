//! Birth, bytes and death of processes: the keeper, the shim, pipes, `trait Place` and
//! `LocalBackend`. Must never know of services, owners or HTTP.

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
