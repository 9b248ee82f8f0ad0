//! What a command left in a workspace that tools of a person run or obey unasked: the list
//! ([`ostler_model::autorun`]) held against what was made or changed.

mod before;
mod config;
mod known;
mod view;
mod walk;

pub use before::Before;
pub(crate) use before::of_changes;
pub(crate) use known::repositories;

#[cfg(test)]
mod tests;
