//! The transactional workspace: lists, shows, commits or discards what a command wrote to an
//! overlay.
//!
//! `store` is the interface: one directory per execution with the layers and their records.
//! `baseline` is the workspace at the start, `staging` copies entries out of the upper layer,
//! `compare` computes the changes, `conflict` finds changes of the host, `commit` writes to the
//! host with its `records` on disk while it holds the `commit_lock`, `decision` records
//! what ends an overlay, `diff` shows changes as text, `remove` deletes a layer.

mod baseline;
mod closed_directories;
mod commit;
mod commit_lock;
mod compare;
mod conflict;
mod decision;
mod diff;
mod error;
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
