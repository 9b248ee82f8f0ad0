//! What a command left in a workspace that tools of a person run or obey unasked: the list
//! ([`ostler_model::autorun`]) held against what was made or changed.

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
