//! What is said on the WebSocket `GET …/terminal`, besides bytes: text frames, one JSON object
//! each. Binary frames are output on the way to the client, and keys on the way back.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};

use super::info::ExecutionBody;
use super::page::is_zero;
use super::problem::CodeName;

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalServerMessage {
    /// First of all.
    Hello(TerminalHello),
    /// Who types changed, or who asked to type does now: with `yours`, it answers a `take`.
    Lease {
        /// Who, in words; null: nobody.
        holder: Option<String>,
        /// Whether it is this connection.
        yours: bool,
    },
    /// The terminal has another size.
    Resized {
        /// The new one.
        size: TermSize,
    },
    /// Output that is not sent: it is gone, or the screen is painted next instead of it, because
    /// the client was too far behind, or had asked for a painting and some of it was lost.
    Gap {
        /// The first byte left out.
        from: u64,
        /// The first byte after it.
        to: u64,
        /// How many of them were lost, for example to a full disk.
        #[serde(default, skip_serializing_if = "is_zero")]
        lost_bytes: u64,
    },
    /// The next binary frame is no output: it paints the screen as it is at this offset, and
    /// output goes on from there. The first painting, after the hello, is not announced.
    Paint {
        /// The offset.
        offset: u64,
    },
    /// Something the client asked for was not done.
    Refused {
        /// The stable code.
        code: CodeName,
        /// What was wrong, for people.
        message: String,
        /// Whether this answers a `take`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        take: bool,
    },
    /// The session ended; the last message.
    Exit(Box<ExecutionBody>),
}

/// Where a client comes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalHello {
    /// The session's short id.
    pub id: String,
    /// The size of its terminal.
    pub size: TermSize,
    /// The offset of the output that follows: after the screen that is painted next, or as
    /// asked.
    pub offset: u64,
    /// Whether its program shows the alternate screen.
    pub alternate: bool,
    /// Its title.
    pub title: String,
    /// Who types, in words; null: nobody.
    pub holder: Option<String>,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TerminalClientMessage {
    /// Wants the writer's lease: without it a client only watches. It lives as long as the
    /// connection. Each is answered once, in their order: by a `lease` that is `yours`, or by
    /// a `refused` with `take`.
    Take {
        /// Also from somebody who holds it.
        #[serde(default)]
        take_over: bool,
        /// Who it is, in words, for others.
        #[serde(default)]
        name: String,
    },
    /// Gives the lease back.
    HandBack,
    /// Gives the terminal another size, until the lease is given back.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Wants the screen painted anew.
    Repaint,
}
