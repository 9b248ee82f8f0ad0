//! Runs one command in a shell session.

use std::time::Duration;

use ostler_model::InputId;

use crate::info::{ExecutionInfo, Prompt};
use crate::terminal::LeaseId;

/// A command for a shell session.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    /// What to type; may have several lines. Of control characters it may hold newlines and
    /// tabs only; at most [`SCRIPT_BYTES`](ostler_model::spec::SCRIPT_BYTES).
    pub script: String,
    /// How long to wait for its end; the command goes on after that.
    pub timeout: Duration,
    /// Whose lease it is typed with.
    pub lease: Option<LeaseId>,
    /// What its client calls it, where it may ask again; it is then typed once.
    pub idempotency: Option<IdempotencyKey>,
}

/// A command that may be asked for again, because the answer was lost: with the connection, or
/// with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// As its client calls it.
    pub id: InputId,
    /// Whether it was asked for before.
    pub is_retry: bool,
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct ShellRun {
    /// How the wait was over.
    pub end: ShellEnd,
    /// Where the command's output begins; where the typing began, when it did not start.
    pub from: u64,
    /// Where its output ends, as far as it is known.
    pub to: u64,
    /// The session.
    pub info: ExecutionInfo,
}

/// How a wait for a command in a shell was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEnd {
    /// It ended, and the shell told how. A script that the shell could not even read (a syntax
    /// error) ends so too, with a status that is not 0.
    Finished {
        /// Its exit status; 128 and the number of the signal that ended it.
        status: i32,
        /// The shell's working directory now, as it told; none where it did not tell.
        cwd: Option<String>,
    },
    /// It waits for an answer: a question, a password, a REPL's prompt.
    Prompt(Prompt),
    /// The shell wants more: an open quote, a here-document, `if` without `fi`. It goes on
    /// when the rest is typed; ctrl-c brings its prompt back.
    Incomplete,
    /// The shell reads again and its marks did not come: its prompt was changed, or it took
    /// nothing of the script (a history expansion that failed, in bash). Whether and how the
    /// command ended is not known.
    NoMarker,
    /// The shell is gone: `exit`, `exec`, or killed.
    ShellEnded,
    /// The time ran out; the command goes on.
    TimedOut,
}
