//! Finds files in a workspace that tools run or obey automatically: matches the list in
//! [`ostler_model::autorun`] against what a command created or changed.

mod git_config;
mod repositories;
mod scan;
mod snapshot;
mod view;

pub(crate) use repositories::repositories;
pub use snapshot::AutorunSnapshot;
pub(crate) use snapshot::scan_changes;

#[cfg(test)]
mod tests;
