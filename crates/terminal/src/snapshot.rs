//! Snapshots: the content of a screen as data.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};

use crate::modes::Modes;

/// The position of a cursor, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorPosition {
    /// The column, from 0.
    pub col: u16,
    /// The row, from 0.
    pub row: u16,
    /// Whether the cursor is visible.
    pub visible: bool,
}

/// The screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenSnapshot {
    /// The size.
    pub size: TermSize,
    /// All visible rows without trailing blanks; as many as `size.rows`.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: CursorPosition,
    /// The window title (OSC 0 and 2), empty until one is set.
    pub title: String,
    /// Whether the alternate screen is active, as full-screen programs use it.
    pub alternate: bool,
    /// The modes that the program has set.
    pub modes: Modes,
    /// The journal offset up to which output was applied.
    pub offset: u64,
    /// Whether all output was applied: false where bytes were dropped before they were ever
    /// parsed.
    pub exact: bool,
}

impl ScreenSnapshot {
    /// The rows as plain text without trailing blank ones, each ended by a newline.
    #[must_use]
    pub fn text(&self) -> String {
        let last = self.rows.iter().rposition(|row| !row.is_empty());
        let rows = &self.rows[..last.map_or(0, |last| last + 1)];
        let mut text = String::with_capacity(rows.iter().map(|row| row.len() + 1).sum());
        for row in rows {
            text.push_str(row);
            text.push('\n');
        }
        text
    }
}
