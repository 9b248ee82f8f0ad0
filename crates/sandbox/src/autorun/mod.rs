//! What a command left in a workspace that tools of a person run or obey unasked: the list
//! ([`ostler_model::autorun`]) held against what was made or changed.

mod config;
mod repositories;
mod snapshot;
mod view;
mod walk;

pub(crate) use repositories::repositories;
pub use snapshot::Snapshot;
pub(crate) use snapshot::of_changes;

#[cfg(test)]
mod tests;
