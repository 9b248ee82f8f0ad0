//! Imports definitions from files of other runners: a Procfile, package scripts, a compose file.
//!
//! Reading is a pure function of texts. What cannot be imported is listed with the reason; nothing
//! is dropped silently.

mod command;
mod compose;
mod compose_fields;
mod dotenv;
mod names;
mod package;
mod procfile;
mod result;
#[cfg(test)]
mod tests;
mod write;
mod yaml;

pub use compose::compose;
pub use package::package;
pub use procfile::procfile;
pub use result::{FILE_BYTES, ImportContext, ImportError, ImportResult, ImportedService, Omission};
pub use write::to_toml;

use result::{SERVICES, check_text};
