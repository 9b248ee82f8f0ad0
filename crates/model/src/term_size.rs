//! The size of a terminal.

use serde::{Deserialize, Serialize};

/// The size of a terminal in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermSize {
    /// The width in columns.
    pub cols: u16,
    /// The height in rows.
    pub rows: u16,
}

impl TermSize {
    /// The most columns of a terminal. The emulator keeps 16 bytes for each cell, twice: the
    /// largest size takes 32 MB, whatever size a client requests.
    pub const COLS_MAX: u16 = 1000;

    /// The most rows of a terminal.
    pub const ROWS_MAX: u16 = 1000;

    /// Whether the size is allowed: both dimensions at least 1 and at most the maximum.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self == self.clamped()
    }

    /// The nearest allowed size.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            cols: self.cols.clamp(1, Self::COLS_MAX),
            rows: self.rows.clamp(1, Self::ROWS_MAX),
        }
    }
}
