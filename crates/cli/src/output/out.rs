//! Standard output and standard error.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

use crate::error::{CommandError, output_failed};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 64 * 1024;

/// Standard output, buffered; a reader that went away is [`CommandError::BrokenPipe`].
#[derive(Debug)]
pub(crate) struct Out(io::BufWriter<io::Stdout>);

impl Out {
    /// Ours.
    pub(crate) fn new() -> Self {
        Self(io::BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
    }

    /// One line.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), CommandError> {
        writeln!(self.0, "{line}").map_err(|error| output_failed(&error))
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.0
            .write_all(bytes)
            .map_err(|error| output_failed(&error))
    }

    /// Everything so far goes out.
    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        let flushed = self.0.flush().and_then(|()| self.0.get_mut().flush());
        flushed.map_err(|error| output_failed(&error))
    }
}

/// One JSON document and a newline.
pub(crate) fn print_json<T: Serialize>(value: &T) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandError::new(ostler_model::ErrorCode::Internal, error.to_string()))?;
    let mut out = Out::new();
    out.line(text)?;
    out.flush()
}
