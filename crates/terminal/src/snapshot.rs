//! What is on a screen, as data.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};

use crate::modes::Modes;

/// Where a cursor stands, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorPosition {
    /// Column, from 0.
    pub col: u16,
    /// Row, from 0.
    pub row: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenSnapshot {
    /// Its size.
    pub size: TermSize,
    /// Every visible row, trailing blanks cut; as many as `size.rows`.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: CursorPosition,
    /// The window title (OSC 0 and 2), empty until one is set.
    pub title: String,
    /// Whether the alternate screen is shown, as full-screen programs use it.
    pub alternate: bool,
    /// What the program asked of its terminal.
    pub modes: Modes,
    /// The journal's offset up to which this is true.
    pub offset: u64,
    /// Whether nothing was missing on the way here: false where bytes were dropped before
    /// they were ever parsed.
    pub exact: bool,
}

impl ScreenSnapshot {
    /// The rows as plain text, blank ones at the end cut, each ended by a newline.
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
