//! Errors of exports and mirrors.

use std::io;

use ostler_journal::ReadError;
use thiserror::Error;

use crate::format::Format;

/// Why an export stopped.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The journal could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Output that was there when the export began was removed before it was written, or its end is
    /// damaged.
    #[error("output from byte {from} to {to} was removed, cleared or damaged during the export")]
    Incomplete {
        /// The offset of the first byte missing.
        from: u64,
        /// The offset after the last byte missing.
        to: u64,
    },
    /// The receiver failed.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// The format cannot be appended to, so it cannot be used for a mirror.
    #[error("no live copy can be kept as {0:?}: choose yaml, avro or jsonl")]
    NotLive(Format),
    /// A record cannot be serialized.
    #[error("cannot spell a record: {0}")]
    Encode(String),
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Encode(error.to_string())
    }
}
