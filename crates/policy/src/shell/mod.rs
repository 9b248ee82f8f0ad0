//! Finds what a shell script would run, as far as it is understood.
//!
//! The grammar (tree-sitter) gives the structure, the lexer here the words; where the two disagree,
//! or a node is not on the list of understood kinds, the part is unresolved. The visitor continues
//! into unresolved parts, so that a deny rule sees what can be seen.

mod arithmetic;
mod backquote;
mod command_list;
#[cfg(test)]
mod command_list_tests;
mod continuation;
mod heredoc;
mod lex;
mod parse;
mod redirect;
mod test_command;
mod visitor;

pub use command_list::{Assignment, CommandList, ListOperator, ListStep, ListedCommand};
pub use parse::command_list;
pub(crate) use parse::read_script;
