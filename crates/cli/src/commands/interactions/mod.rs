//! `ostler interactions`: the questions of commands, of clients and of the command policy.
//!
//! * [`args`]: the verbs and what they take.
//! * [`list`]: the table of questions.
//! * [`answer`]: answers and cancels them; where an answer is read from.
//! * [`watch`]: follows them.

mod answer;
mod args;
mod list;
mod watch;

pub(crate) use args::{InteractionsArgs, run};
