//! `ostler.toml`: the services of a workspace (E7).
//!
//! Reading it is a pure function of its text; it starts nothing. Finding it looks upwards from
//! where the caller stands.

mod changes;
mod find;
mod parse;
#[cfg(test)]
mod tests;
mod toml_value;
mod values;

pub use changes::{ManifestChanges, diff};
pub use find::FILE_NAME;
pub(crate) use find::{Manifest, locate, locate_or};
pub use parse::{ManifestError, parse};
