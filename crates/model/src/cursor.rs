//! Positions in one execution's journal.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A position in one execution's journal: an output byte offset over all streams in arrival
/// order, and an event number. Spelled `offset.event`, for example `8192.5`; opaque to clients.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct Cursor {
    /// Output bytes before the position.
    pub offset: u64,
    /// Events before the position.
    pub event: u64,
}

/// The error for a string that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no cursor: give one that an earlier answer returned, or 0 for the start")]
pub struct CursorError(String);

impl Cursor {
    /// The beginning of the journal.
    pub const START: Self = Self {
        offset: 0,
        event: 0,
    };
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.offset, self.event)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let invalid = || CursorError(text.to_owned());
        let (offset, event) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        Ok(Self {
            offset: offset.parse().map_err(|_| invalid())?,
            event: event.parse().map_err(|_| invalid())?,
        })
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for Cursor {
    type Error = CursorError;

    fn try_from(text: String) -> Result<Self, CursorError> {
        text.parse()
    }
}
