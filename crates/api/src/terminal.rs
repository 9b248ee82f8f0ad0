//! Terminals by single requests: screen, raw output, keys, size.

use ostler_model::{ByteString, TermSize};
use serde::{Deserialize, Serialize};

/// `GET …/screen`: a screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenBody {
    /// Its size.
    pub size: TermSize,
    /// Every visible row, trailing blanks cut; as many as `size.rows`.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: ScreenCursorBody,
    /// The window title (OSC 0 and 2), empty until one is set.
    pub title: String,
    /// Whether the alternate screen is shown, as full-screen programs use it.
    pub alternate: bool,
    /// The terminal modes that the program has set.
    pub modes: ScreenModesBody,
    /// The journal's offset up to which this is true.
    pub offset: u64,
    /// Whether nothing was missing on the way here: false where bytes were dropped before
    /// they were ever parsed.
    pub exact: bool,
}

impl ScreenBody {
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

/// The position of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenCursorBody {
    /// Column, from 0.
    pub col: u16,
    /// Row, from 0.
    pub row: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// Modes as set by DECSET, DECRST and friends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScreenModesBody {
    /// Whether bracketed paste is enabled (mode 2004).
    #[serde(default)]
    pub bracketed_paste: bool,
    /// Arrows are sent as `ESC O A` (DECCKM).
    #[serde(default)]
    pub application_cursor: bool,
    /// The keypad sends application sequences (DECKPAM).
    #[serde(default)]
    pub application_keypad: bool,
    /// Whether mouse reporting is enabled (modes 9, 1000, 1002, 1003).
    #[serde(default)]
    pub mouse: bool,
}

/// `GET …/terminal/output`: raw output by byte offsets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalOutputBody {
    /// ANSI sequences as they came: a string, or `{"base64": "…"}` where they are not UTF-8.
    pub data: ByteString,
    /// The offset of the first byte of `data`.
    pub offset: u64,
    /// The offset of the next request.
    pub next_offset: u64,
    /// The oldest offset in the view.
    pub start_offset: u64,
    /// The length of the session's output.
    pub end_offset: u64,
    /// Whether the requested offset was below `start_offset` and was moved there.
    pub truncated: bool,
}

/// `POST …/keys`: typed in one write that no other is mixed into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysBody {
    /// The pieces, in order.
    pub pieces: Vec<InputPieceBody>,
}

/// One piece of input: `{"text": "ls"}`, `{"key": "enter"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputPieceBody {
    /// Text; a newline in it is sent as Enter.
    Text(String),
    /// A key by its name: `enter`, `ctrl-c`, `alt-left`, `f5`.
    Key(String),
    /// Pasted text: in bracketed paste mode between its markers.
    Paste(String),
    /// Bytes, unchanged, in base64.
    Base64(String),
}

/// The outcome of typing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysResponse {
    /// Bytes to be written.
    pub bytes: u64,
    /// Bytes the terminal accepted; fewer when the program does not read.
    pub taken: u64,
}

/// The body of `POST …/resize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResizeBody {
    /// The number of columns.
    pub cols: u16,
    /// The number of rows.
    pub rows: u16,
}

impl From<ResizeBody> for TermSize {
    fn from(ResizeBody { cols, rows }: ResizeBody) -> Self {
        Self { cols, rows }
    }
}

impl From<TermSize> for ResizeBody {
    fn from(TermSize { cols, rows }: TermSize) -> Self {
        Self { cols, rows }
    }
}
