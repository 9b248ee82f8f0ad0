//! A terminal by requests: its screen, raw output, keys, size.

use ostler_model::{ByteString, TermSize};
use serde::{Deserialize, Serialize};

pub use ostler_terminal::ScreenSnapshot as ScreenBody;

/// `GET …/terminal/output`: raw output by byte offsets (C3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalOutputBody {
    /// ANSI sequences as they came: a string, or `{"base64": "…"}` where they are not UTF-8.
    pub data: ByteString,
    /// The offset of the first byte of `data`.
    pub offset: u64,
    /// The offset to ask for next.
    pub next_offset: u64,
    /// The oldest offset the view reaches back to.
    pub start_offset: u64,
    /// The session's output length.
    pub end_offset: u64,
    /// Whether the offset asked lay below `start_offset` and was moved there.
    pub truncated: bool,
}

/// `POST …/keys`: typed as one write that no other gets into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysBody {
    /// In order.
    pub pieces: Vec<InputPieceBody>,
}

/// One thing that is typed: `{"text": "ls"}`, `{"key": "enter"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputPieceBody {
    /// Text; a newline in it is sent as Enter.
    Text(String),
    /// A key by its name: `enter`, `ctrl-c`, `alt-left`, `f5`.
    Key(String),
    /// Text that is pasted: between marks where the program asked for them.
    Paste(String),
    /// Bytes as they are, in base64.
    Base64(String),
}

/// What became of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysResponse {
    /// Bytes that were to be written.
    pub bytes: u64,
    /// Bytes the terminal took; fewer when the program does not read.
    pub taken: u64,
}

/// `POST …/resize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResizeBody {
    /// Columns.
    pub cols: u16,
    /// Rows.
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
