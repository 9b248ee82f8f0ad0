//! Messages of the WebSocket `GET …/terminal`: text frames are one JSON object each. Binary frames
//! are output on the way to the client, and keys on the way back.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::page::is_zero;
use super::problem::CodeName;

/// A message from the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalServerMessage {
    /// The first message.
    Hello(TerminalHello),
    /// The holder of the lease changed, or a `take` was granted: with `yours`, it answers a `take`.
    Lease {
        /// The holder's name; null means there is none.
        holder: Option<String>,
        /// Whether the holder is this connection.
        yours: bool,
    },
    /// The terminal was resized.
    Resized {
        /// The new size.
        size: TermSize,
    },
    /// Output that is not sent: it was dropped, or the screen is repainted next instead, because
    /// the client was too far behind, or requested a repaint and some of the output was lost.
    Gap {
        /// The offset of the first byte left out.
        from: u64,
        /// The offset after the last byte left out.
        to: u64,
        /// How many of the bytes were lost, for example to a full disk.
        #[serde(default, skip_serializing_if = "is_zero")]
        lost_bytes: u64,
    },
    /// The next binary frame is not output: it repaints the screen as of this offset, and output
    /// continues from there. The first repaint, after the hello, is not announced.
    Paint {
        /// The offset in the session's output.
        offset: u64,
    },
    /// A request of the client was not carried out.
    Refused {
        /// The stable code.
        code: CodeName,
        /// The problem, for people.
        message: String,
        /// Whether this answers a `take`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        take: bool,
    },
    /// The session ended; the last message.
    Exit(Box<ExecutionBody>),
}

/// The state at the start of the connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalHello {
    /// The session's short id.
    pub id: String,
    /// The size of its terminal.
    pub size: TermSize,
    /// The offset of the output that follows: after the screen that is painted next, or as
    /// requested.
    pub offset: u64,
    /// Whether the alternate screen is active.
    pub alternate: bool,
    /// The terminal's title.
    pub title: String,
    /// The holder of the lease; null means there is none.
    pub holder: Option<String>,
}

/// A message from the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TerminalClientMessage {
    /// Requests the writer's lease: without it a client only watches. The lease lasts as long as
    /// the connection. Each request is answered once, in order: by a `lease` that is `yours`, or by
    /// a `refused` with `take`.
    Take {
        /// Whether to take it over from another holder.
        #[serde(default)]
        take_over: bool,
        /// The client's name, shown to others.
        #[serde(default)]
        name: String,
    },
    /// Releases the lease.
    HandBack,
    /// Resizes the terminal, until the lease is released.
    Resize {
        /// The number of columns.
        cols: u16,
        /// The number of rows.
        rows: u16,
    },
    /// Requests a repaint of the screen.
    Repaint,
}
