//! Control groups of either version, or both at once (hybrid): the unified hierarchy ends
//! trees and, where it has controllers, limits them; hierarchies of the first version limit
//! where they have the controllers. Everything degrades to nothing, with a reason.
//!
//! [`layout`] reads what is mounted where, [`subtree`] is our directory in each hierarchy,
//! [`slot`] the one directory under it that a shim reuses from command to command.

mod files;
pub mod layout;
pub mod slot;
pub mod subtree;

pub use layout::{Controller, Hierarchy, Layout};
pub use slot::{Entry, Slot};
pub use subtree::{ShimName, Subtree, SubtreeError, Version, end_slots_of};
