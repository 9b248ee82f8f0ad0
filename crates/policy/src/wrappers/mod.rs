//! Programs that run other programs: finds out which, where that is visible.

mod builtins;
mod command_wrappers;
mod expand;
mod find;
mod git;
mod interpreters;
mod options;
mod sed_awk;
mod test_runners;

use expand::InnerCommands;

pub(crate) use builtins::analyze_test;
pub(crate) use expand::expand;
pub(crate) use interpreters::{loads_files, runs_its_operand};
