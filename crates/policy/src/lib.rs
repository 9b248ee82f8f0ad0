//! Command policy: rules over the words a command line really runs, which are found by parsing it
//! and following wrappers. Pure: knows nothing of files, clocks, processes or async runtimes.
//!
//! [`RuleSet::load`] takes the texts of rule files, [`RuleSet::evaluate`] a command. A policy is
//! for consent: it says what a person wants to be asked about. It is no isolation: that is what the
//! sandbox is for.
#![forbid(unsafe_code)]

mod analysis;
mod analyze;
#[cfg(test)]
mod consumer_tests;
mod context;
mod file_words;
mod flags;
mod load;
mod paths;
mod rule;
mod rule_file;
mod ruleset;
mod shell;
mod source;
mod test_words;
mod verdict;
mod word;
mod wrappers;

pub use context::{CommandContext, ProgramLookup};
pub use file_words::{FileRole, FileWord, FileWords, file_words};
pub use load::LoadError;
pub use ruleset::{RuleInfo, RuleSet};
pub use shell::{Assignment, CommandList, ListOperator, ListStep, ListedCommand, command_list};
pub use source::{RuleSource, RuleTier};
pub use verdict::{MatchedRule, PolicyDecision, PolicyVerdict};
pub use word::CommandWord;
pub use wrappers::{
    FirstWord, InnerProgram, ShellInput, Wrapper, WrapperClass, WrapperMatch, inner_program,
    package_program, shell_input, wrappers_of,
};
