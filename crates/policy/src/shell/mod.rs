//! What a shell script would run, as far as it is understood.
//!
//! The grammar gives the structure, the lexer here the words; where the two do not fit, or a
//! node is not on the list of what is understood, that is a doubt. The walk goes on into what
//! it doubts, so that a deny rule sees what can be seen.

mod arithmetic;
mod heredoc;
mod lex;
mod parse;
mod redirect;
mod test_command;
mod visitor;

pub(crate) use parse::read_script;
