//! Which commands are services (E2): a pure function over a table of frameworks.
//!
//! A command is normalised first (prefixes, wrappers, scripts of a package), then compared with
//! the entries of a [`Table`]. Nothing is run; files of the workspace are read through a
//! [`Files`] the caller gives.
//!
//! The way of a command: `script` finds the one a shell script ends with, `wrap` takes off
//! what stands before it, `packages`, `recipes` and `spread` resolve names of scripts,
//! and what is left is compared with each `pattern` of the entries about its program.

mod call;
mod contents;
mod detect;
mod disk;
mod file;
mod find;
mod lex;
mod packages;
mod pattern;
mod port;
mod recipes;
mod script;
mod spread;
mod table;
#[cfg(test)]
mod tests;
mod words;
mod wrap;

pub use detect::{Detected, Files, NoFiles, Subject};
pub use disk::{DiskFiles, FILE_BYTES};
pub use table::{EntryInfo, Table, TableError};
