//! Which commands are services: a pure function over a table of frameworks.
//!
//! A command is normalised first (prefixes, wrappers, scripts of a package), then compared with
//! the entries of a [`DetectionTable`]. Files of the workspace are read through a
//! [`WorkspaceFiles`] the caller provides.
//!
//! The stages of a detection: `script` finds the command that a shell script ends with, `wrappers`
//! removes what precedes it, `package_scripts`, `task_runners` and `script_group` resolve names of
//! scripts, and the resulting command is compared with each `pattern` of the entries for its program.
//!
//! This crate runs nothing and must never know of processes, clocks, async runtimes or the disk.
#![forbid(unsafe_code)]

mod arguments;
mod detector;
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

pub use table::{DetectionTable, EntryInfo, TableError};
pub use types::{DetectedService, DetectionQuery, NoFiles, WorkspaceFiles};
