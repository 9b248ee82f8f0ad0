//! Control groups of either version, or both at once (hybrid): the unified hierarchy kills trees
//! and, where it has controllers, limits them; hierarchies of version 1 limit where they have the
//! controllers. Every missing feature degrades to nothing, with a reason.
//!
//! [`hierarchy`] finds the mounted hierarchies, [`root`] is Ostler's directory in each, [`slot`]
//! the one directory under it that a shim reuses from command to command; `limits` sets its limits
//! by whichever version has the controller, `limit_events` reports that one was reached, `freeze`
//! freezes it, [`owner`] records its owner, `restore` recreates it when another process removed it.

mod files;
mod freeze;
pub mod hierarchy;
mod limit_events;
mod limits;
pub mod owner;
mod restore;
pub mod root;
pub mod slot;

pub use freeze::{FREEZE_WAIT_MS, FreezeOutcome};
pub use hierarchy::{CgroupLayout, Controller, Hierarchy};
pub use owner::SlotOwner;
pub use root::{
    CgroupRoot, CgroupRootError, CgroupVersion, ShimName, cpu_usage_us, kill_slots_of, pids_in,
    slot_directory,
};
pub use slot::{CgroupJoin, CgroupSlot, HelperPids};
