//! Programs that run what they are given: what that is, where it can be seen.

mod builtins;
mod code;
mod editors;
mod find;
mod follow;
mod git;
mod runners;
mod table;
mod wrappers;

use follow::Given;

pub(crate) use builtins::tested;
pub(crate) use code::{loads_files, runs_its_operand};
pub(crate) use follow::expand;
