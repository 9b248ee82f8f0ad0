//! Inputs that go in once, as daemon and shim speak of them.

use ostler_model::InputId;
use serde::{Deserialize, Serialize};

/// An input that goes in once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotentInput {
    /// As its client calls it.
    pub id: InputId,
    /// The end of output that was known when it was sent first.
    pub output_end: u64,
    /// All of its bytes.
    pub len: u64,
}

/// How much of an input went in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProgress {
    /// Which.
    pub input: IdempotentInput,
    /// How many of its bytes were taken.
    pub accepted: u64,
}
