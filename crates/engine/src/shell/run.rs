//! Runs one command in a shell session.

use std::time::Duration;

use ostler_model::InputId;

use crate::info::{ExecutionInfo, Prompt};
use crate::lease::LeaseId;

/// A command for a shell session.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    /// The text to type; may have several lines. The only control characters allowed are newlines
    /// and tabs; at most [`SCRIPT_BYTES`](ostler_model::spec::SCRIPT_BYTES).
    pub script: String,
    /// How long to wait for its end; the command continues after that.
    pub timeout: Duration,
    /// The lease under which it is typed.
    pub lease: Option<LeaseId>,
    /// The client's key for repeated requests; the command is then typed once.
    pub idempotency: Option<IdempotencyKey>,
}

/// Identifies repeated requests for one command, whose first answer was lost with the connection or
/// with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The client's id.
    pub id: InputId,
    /// Whether it was requested before.
    pub is_retry: bool,
}

/// The result of a wait for a command.
#[derive(Debug, Clone)]
pub struct ShellRun {
    /// How the wait ended.
    pub end: ShellEnd,
    /// The offset at which the command's output begins; that of the typed text if it did not start.
    pub from: u64,
    /// The offset at which its output ends, as far as known.
    pub to: u64,
    /// The session.
    pub info: ExecutionInfo,
}

/// How a wait for a command in a shell ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEnd {
    /// It ended, and the shell reported it. A script that the shell cannot parse (a syntax error)
    /// also ends this way, with a nonzero status.
    Finished {
        /// Its exit status; 128 plus the number of the signal that ended it.
        status: i32,
        /// The shell's current working directory; none where it was not reported.
        cwd: Option<String>,
    },
    /// It waits for an answer: to a question, a password prompt, or the prompt of a REPL.
    Prompt(Prompt),
    /// The shell waits for the rest of the script: of an open quote, a here-document, or an `if`
    /// without `fi`. It continues when the rest is typed; ctrl-c returns to the prompt.
    Incomplete,
    /// The shell reads input again without having printed its markers: its prompt was changed, or
    /// it rejected the script (a failed history expansion, in bash). Whether and how the command
    /// ended is unknown.
    NoMarker,
    /// The shell has ended: `exit`, `exec`, or killed.
    ShellEnded,
    /// The timeout expired; the command continues.
    TimedOut,
}
