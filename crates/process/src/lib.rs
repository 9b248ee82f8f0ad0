//! Starts processes, moves their bytes and records how they end: the execution backend.
//!
//! [`Backend`] is the interface the engine uses; [`LocalBackend`] implements it on this machine
//! with a zygote (process `ostler-keeper`) that forks one durable shim per execution, pipes or a
//! terminal, and the egress proxy of jails with an allow list. This crate knows nothing of
//! services, owners or HTTP.

pub mod backend;
#[expect(unsafe_code, reason = "close_range(2)")]
mod cloexec;
pub mod egress;
#[expect(unsafe_code, reason = "environ(7)")]
mod environ;
mod idempotent_input;
pub mod local;
pub mod open_files;
mod pidfd;
pub mod private_dir;
mod proto;
mod shim;
pub mod spec_file;
mod sys;
pub mod zygote;

pub use backend::{
    Backend, BoxFuture, ControlCommand, ControlError, ExitRecord, KillReason, LaunchIo, LaunchPlan,
    LeaderOutcome, OverlayRequestError, PinnedFile, ProcessControl, ProcessEvent, RecoveryOutcome,
    STEP_OPEN_FILES, STEP_STORAGE, STEP_TERMINAL, SnapshotError, SpawnError, SpawnHandle,
    TerminalQuery, Timeouts,
};
pub use cloexec::set_cloexec_on_all;
pub use egress::{EGRESS_ARGUMENT, egress_main};
pub use environ::scrub_variables;
pub use local::{BackendOpenError, LocalBackend, ZygoteConfig};
pub use pidfd::wait_exit;
pub use sys::async_fd::register as register_descriptor;
pub use sys::heap::{keep_freed_memory, trim_heap, unmap_program};
pub use zygote::{ZYGOTE_ARGUMENT, zygote_main};
