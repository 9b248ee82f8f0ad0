//! [`OutputRow`]: one line of output as text.

use ostler_model::{StreamName, Timestamp};

/// One line of text, or what redraws left of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRow {
    /// When its first byte was read; for a redrawn one, that of its last state.
    pub at: Timestamp,
    /// The stream of the line.
    pub stream: StreamName,
    /// The offset of its first byte.
    pub offset: u64,
    /// Lines of the command in it: one, unless it was redrawn or repeated.
    pub lines: u64,
    /// Number of equal rows it represents.
    pub repeats: u64,
    /// Their bytes as the command printed them, including line ends.
    pub bytes: u64,
    /// Whether it is binary data, as its text then notes.
    pub binary: bool,
    /// Whether a part of its text is replaced by a mark.
    pub is_cut: bool,
    /// Its text.
    pub text: String,
}

impl OutputRow {
    /// Whether it is of standard error.
    #[must_use]
    pub fn is_stderr(&self) -> bool {
        self.stream == StreamName::Stderr
    }
}
