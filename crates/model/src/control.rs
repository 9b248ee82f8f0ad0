//! Commands to a running process tree, and inputs that are applied at most once.
//!
//! A backend delivers them; [`crate::ExitRecord`] is the final result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{InputId, Signal, TermSize};

/// The most bytes one [`ControlCommand::Input`] carries.
pub const INPUT_CHUNK_BYTES: usize = 64 * 1024;

/// A command to a running tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlCommand {
    /// Begin the kill escalation; with `grace` zero, kill at once.
    Stop {
        /// Time between the polite request and the kill.
        grace: Duration,
    },
    /// Send one signal to the leader's process group.
    Signal(Signal),
    /// Bytes for standard input or the terminal, at most [`INPUT_CHUNK_BYTES`].
    Input(Vec<u8>),
    /// Close standard input.
    CloseInput,
    /// Set the size of the terminal.
    Resize(TermSize),
    /// Whether the growth of the output is reported.
    Watch(bool),
    /// Freeze the tree, or thaw it; the backend reports the resulting state.
    Freeze(bool),
    /// The offset from which output must be kept for a lossless reader; none without one. Obeyed
    /// while output is in memory: the command waits for that reader.
    Retain(Option<u64>),
    /// As [`ControlCommand::Input`], for bytes that are applied once however often they are sent:
    /// some of `input` from `from` on. Without bytes it queries the progress of that input, which
    /// the backend reports. A shim of an earlier version ignores it.
    InputOnce {
        /// The input that the bytes belong to.
        input: IdempotentInput,
        /// Offset of the first of the bytes within the input.
        from: u64,
        /// At most [`INPUT_CHUNK_BYTES`].
        bytes: Vec<u8>,
    },
    /// As [`ControlCommand::Input`], for bytes that are recorded nowhere. A shim of an earlier version
    /// ignores it.
    SecretInput(Vec<u8>),
}

/// An input that is applied at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotentInput {
    /// The identifier its client chose.
    pub id: InputId,
    /// The end of output that was known when it was sent first.
    pub output_end: u64,
    /// Number of all of its bytes.
    pub len: u64,
}

/// How much of an input was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProgress {
    /// The input.
    pub input: IdempotentInput,
    /// Number of its bytes that were taken.
    pub accepted: u64,
}
