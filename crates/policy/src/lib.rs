//! Which commands may run (B3): rules over the words a command line really runs, found by
//! parsing, seen through wrappers. Pure: must never know of files, clocks, processes or
//! async runtimes.
//!
//! [`PolicySet::load`] takes the texts of rule files, [`PolicySet::judge`] a command. A policy
//! is for consent: it says what a person wants to be asked about. The wall is the sandbox.
#![forbid(unsafe_code)]

mod file;
mod file_words;
mod flags;
mod load;
mod look;
mod paths;
mod rule;
mod seen;
mod set;
mod shell;
mod source;
mod subject;
mod verdict;
mod word;
mod wrap;

pub use file_words::{FileRole, FileWord, FileWords, file_words};
pub use load::LoadError;
pub use set::{PolicySet, RuleInfo};
pub use source::{Source, Tier};
pub use subject::{Find, Subject};
pub use verdict::{Decision, Fired, Verdict};
