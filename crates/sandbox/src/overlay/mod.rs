//! The transactional workspace: what a command wrote to an overlay, shown, committed to the
//! host or forgotten.
//!
//! `store` is the face: one directory per execution with the layers and what is known of them.
//! `baseline` is what the command saw at its start, `staging` what it left behind, `compare` the
//! difference of the two, `conflict` what the host did meanwhile, `commit` the way to the host
//! with its `records` on disk, `diff` the difference as text, `openat2` the only way in which
//! paths are followed, `remove` the end of a layer.

mod baseline;
mod commit;
mod compare;
mod conflict;
mod diff;
mod entry_stamp;
mod error;
pub(crate) mod openat2;
mod records;
mod remove;
mod staging;
mod store;

pub use error::OverlayError;
pub use store::{
    CommitOutcome, DECIDED_LISTED_MAX, OVERLAY_ENTRIES_MAX, OverlayConfig, OverlayLayers,
    OverlayStore, prepare,
};

#[cfg(test)]
mod tests;
