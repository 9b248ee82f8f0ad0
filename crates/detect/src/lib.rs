//! Detection of services: a pure function from a command to the framework it starts, by a table.
//!
//! A command is normalised (wrappers removed, scripts of packages resolved) and then matched against
//! the entries of a [`DetectionTable`]. Files of the workspace are read through the caller's
//! [`WorkspaceFiles`].
//!
//! The stages: `ostler_policy` parses a shell script to its commands, `script` chooses the one that
//! decides, `wrappers` removes wrappers, `package_scripts`, `task_runners` and `script_group` resolve
//! names of scripts, and the resulting command is matched against each `pattern` of the entries for
//! its program.
//!
//! This crate runs nothing and must never know of processes, clocks, async runtimes or the disk.
#![forbid(unsafe_code)]

mod arguments;
mod detector;
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
