//! Standard output.

use std::io::{self, IsTerminal as _, Write};

use ostler_model::{ColourMode, ErrorCode, visible_json};
use serde::Serialize;

use super::styled_line::{Colour, StyledLine};
use crate::error::{CommandError, output_failed};

/// The size of the buffer in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Standard output, buffered; a reader that closed it is [`CommandError::BrokenPipe`].
#[derive(Debug)]
pub(crate) struct StdoutWriter {
    writer: io::BufWriter<io::Stdout>,
    is_terminal: bool,
}

impl StdoutWriter {
    /// The standard output of this process.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where text is made harmless"
    )]
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        Self {
            is_terminal: stdout.is_terminal(),
            writer: io::BufWriter::with_capacity(BUFFER_BYTES, stdout),
        }
    }

    pub(crate) fn write_line(&mut self, line: impl Into<StyledLine>) -> Result<(), CommandError> {
        self.write_line_part(line)?;
        self.end_line()
    }

    /// Writes a part of a line.
    pub(crate) fn write_line_part(
        &mut self,
        line: impl Into<StyledLine>,
    ) -> Result<(), CommandError> {
        self.write_raw(line.into().rendered().as_bytes())
    }

    pub(crate) fn end_line(&mut self) -> Result<(), CommandError> {
        self.write_raw(b"\n")
    }

    /// Writes a line without its end that a program printed or a file holds: on a terminal in
    /// `colour` and without control sequences, byte for byte elsewhere.
    pub(crate) fn output_line(
        &mut self,
        line: &[u8],
        colours: ColourMode,
        colour: Option<Colour>,
    ) -> Result<(), CommandError> {
        if self.is_terminal {
            return self.write_line_part(StyledLine::from_output(line, colours, colour));
        }
        self.write_raw(line)
    }

    /// As [`Self::output_line`], for text with line ends.
    pub(crate) fn output_lines(&mut self, text: &[u8]) -> Result<(), CommandError> {
        if !self.is_terminal {
            return self.write_raw(text);
        }
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let (line, is_ended) = line
                .strip_suffix(b"\n")
                .map_or((line, false), |it| (it, true));
            self.output_line(line, ColourMode::Escape, None)?;
            if is_ended {
                self.end_line()?;
            }
        }
        Ok(())
    }

    /// Writes a JSON document and a newline.
    pub(crate) fn write_json(&mut self, document: &str) -> Result<(), CommandError> {
        if self.is_terminal {
            self.write_raw(visible_json(document).as_bytes())?;
        } else {
            self.write_raw(document.as_bytes())?;
        }
        self.end_line()
    }

    /// Writes bytes unchanged, where exactly that is requested.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.writer
            .write_all(bytes)
            .map_err(|error| output_failed(&error))
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        let flushed = self
            .writer
            .flush()
            .and_then(|()| self.writer.get_mut().flush());
        flushed.map_err(|error| output_failed(&error))
    }
}

/// Prints one JSON document and a newline.
pub(crate) fn print_json<T: Serialize>(value: &T) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))?;
    let mut out = StdoutWriter::new();
    out.write_json(&text)?;
    out.flush()
}
