//! The transactional workspace: what a command wrote to an overlay, shown, committed to the
//! host or forgotten.
//!
//! `store` is the face: one directory per execution with the layers and what is known of them.
//! `baseline` is what the command saw at its start, `upper` what it left behind, `scan` the
//! difference of the two, `conflict` what the host did meanwhile, `commit` the way to the host
//! with its `records` on disk, `diff` the difference as text, `beneath` the only way in which
//! paths are followed, `remove` the end of a layer.

mod baseline;
pub(crate) mod beneath;
mod commit;
mod conflict;
mod diff;
mod error;
mod records;
mod remove;
mod scan;
mod seen;
mod store;
mod upper;

pub use error::OverlayError;
pub use store::{DECIDED_LISTED_MAX, Layers, OVERLAY_ENTRIES_MAX, Outcome, Store, Wanted, prepare};

#[cfg(test)]
mod tests;
