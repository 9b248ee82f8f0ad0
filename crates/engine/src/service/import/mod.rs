//! Definitions out of what other runners read: a Procfile, scripts of a package, a compose file.
//!
//! Reading is a pure function of texts. What cannot be taken over is listed, each with the
//! reason; nothing is dropped in silence.

mod command;
mod compose;
mod dotenv;
mod fields;
mod imported;
mod names;
mod package;
mod procfile;
#[cfg(test)]
mod tests;
mod write;
mod yaml;

pub use compose::compose;
pub use imported::{Beside, FILE_BYTES, ImportError, Imported, Left, Service};
pub use package::package;
pub use procfile::procfile;
pub use write::to_toml;

use imported::{SERVICES, check_size};
