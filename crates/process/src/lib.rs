//! Birth, bytes and death of processes: the keeper, the shim, pipes, `trait Place` and
//! `LocalPlace`. Must never know of services, owners or HTTP.

#[expect(unsafe_code, reason = "environ(7)")]
mod environ;
pub mod gate;
pub mod keeper;
pub mod local;
mod once;
pub mod open_files;
pub mod place;
pub mod private_dir;
mod proto;
#[expect(unsafe_code, reason = "close_range(2)")]
mod seal;
mod shim;
pub mod spec_file;
mod sys;
mod watch;

pub use environ::forget_variables;
pub use gate::{GATE_ARGUMENT, gate_main};
pub use keeper::{KEEPER_ARGUMENT, keeper_main};
pub use local::{Keeper, LocalPlace, OpenError};
pub use place::{
    Birth, BoxFuture, Clocks, Control, ControlError, ExitRecord, Found, Ladder, LaunchIo,
    LaunchPlan, ObserveError, Order, Outcome, PinnedFile, Place, Question, Report, STEP_OPEN_FILES,
    STEP_STORAGE, STEP_TERMINAL, SpawnError, WorkspaceError,
};
pub use seal::seal_descriptors;
pub use sys::heap::{keep_freed_memory, trim_heap, unmap_program};
pub use sys::reactor::register as register_descriptor;
pub use watch::ended;
