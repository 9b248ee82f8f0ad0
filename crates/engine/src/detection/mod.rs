//! Which commands are services (E2): a pure function over a table of frameworks.
//!
//! A command is normalised first (prefixes, wrappers, scripts of a package), then compared with
//! the entries of a [`DetectionTable`]. Nothing is run; files of the workspace are read through a
//! [`WorkspaceFiles`] the caller gives.
//!
//! The way of a command: `script` finds the one a shell script ends with, `wrappers` takes off
//! what stands before it, `package_scripts`, `task_runners` and `script_group` resolve names of scripts,
//! and what is left is compared with each `pattern` of the entries about its program.

mod arguments;
mod detector;
mod disk_files;
mod lex;
mod package_scripts;
mod pattern;
mod port;
mod script;
mod script_group;
mod simple_command;
mod source_file;
mod table;
mod table_file;
mod task_runners;
#[cfg(test)]
mod tests;
mod types;
mod wrappers;

pub use disk_files::{DiskFiles, FILE_BYTES};
pub use table::{DetectionTable, EntryInfo, TableError};
pub use types::{DetectedService, DetectionQuery, NoFiles, WorkspaceFiles};
