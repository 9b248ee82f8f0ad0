//! Programs that run other programs: finds out which, where that is visible.

mod builtins;
mod command_wrappers;
mod expand;
mod find;
mod git;
mod git_commit;
mod inner_program;
mod interpreters;
mod jq;
mod launched_program;
mod launchers;
mod option_scripts;
mod options;
mod sed_awk;
mod test_runners;
mod wrapper;

use expand::InnerCommands;

pub use command_wrappers::{ShellInput, shell_input};
pub(crate) use expand::expand;
pub use inner_program::{InnerProgram, inner_program, wrappers_of};
pub(crate) use interpreters::{loads_files, reads_code_from_input, runs_its_operand};
pub use launchers::package_program;
pub use wrapper::{FirstWord, Wrapper, WrapperClass, WrapperMatch};
