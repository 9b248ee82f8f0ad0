//! Control groups of either version, or both at once (hybrid): the unified hierarchy ends
//! trees and, where it has controllers, limits them; hierarchies of the first version limit
//! where they have the controllers. Everything degrades to nothing, with a reason.
//!
//! [`layout`] reads what is mounted where, [`subtree`] is our directory in each hierarchy,
//! [`slot`] the one directory under it that a shim reuses from command to command; `limits`
//! sets its limits by whichever version has the controller, `alarm` tells that one was reached,
//! `freeze` makes it stand still, [`owner`] says whose it is, `vanish` makes it again when
//! somebody removed it.

mod alarm;
mod files;
mod freeze;
pub mod layout;
mod limits;
pub mod owner;
pub mod slot;
pub mod subtree;
mod vanish;

pub use freeze::{FREEZE_WAIT_MS, Freeze};
pub use layout::{Controller, Hierarchy, Layout};
pub use owner::SlotOwner;
pub use slot::{Entry, Helpers, Slot};
pub use subtree::{
    ShimName, Subtree, SubtreeError, Version, end_slots_of, members_in, slot_directory,
};
