//! Definitions out of what other runners read: a Procfile, scripts of a package, a compose file.
//!
//! Reading is a pure function of texts. What cannot be taken over is listed, each with the
//! reason; nothing is dropped in silence.

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

use result::{SERVICES, check_size};
