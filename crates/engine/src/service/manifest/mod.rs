//! `ostler.toml`: the services of a workspace.
//!
//! Parsing is a pure function of the text and starts nothing. The file is searched upwards from the
//! caller's working directory.

mod changes;
mod container;
mod find;
mod parse;
#[cfg(test)]
mod tests;
mod toml_value;
mod values;

pub use changes::{ManifestChanges, diff};
pub use find::FILE_NAME;
pub(crate) use find::{Manifest, find_wrong_type, locate, locate_or};
pub use parse::{ManifestError, parse};
