//! Inputs that are written to a command at most once however often they are sent, as daemon and
//! shim exchange them.

use ostler_model::InputId;
use serde::{Deserialize, Serialize};

/// Identifies an input that is written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotentInput {
    /// The identifier its client chose.
    pub id: InputId,
    /// The end offset of the output that the client knew when it first sent the input.
    pub output_end: u64,
    /// The total length in bytes.
    pub len: u64,
}

/// How much of an input was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProgress {
    /// The input.
    pub input: IdempotentInput,
    /// How many of its bytes were accepted.
    pub accepted: u64,
}
