//! The asciicast format, version 2, which `asciinema play` shows.

use std::io::Write;

use ostler_journal::{Decoder, Encoding, encoding_for_label};
use ostler_model::{Event, Io, StreamName, TermSize, Timestamp};
use serde_json::json;

use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::ExportError;

/// The terminal size in the header for executions without a terminal.
const DEFAULT_SIZE: TermSize = TermSize { cols: 80, rows: 24 };
const NANOSECONDS: f64 = 1e9;

/// Writes entries as events of a recording.
pub(crate) struct CastSink<W: Write> {
    out: W,
    started_at: Option<Timestamp>,
    /// The decoders of stdout, stderr and terminal; each holds back an incomplete character.
    decoders: [Decoder; 3],
    /// Whether the last character of the stream was a carriage return.
    after_cr: [bool; 3],
}

impl<W: Write> CastSink<W> {
    /// Writes the header.
    pub(crate) fn begin(mut out: W, subject: &ExportSubject<'_>) -> Result<Self, ExportError> {
        let size = match subject.spec.map(|spec| &spec.io) {
            Some(Io::Pty { size }) => *size,
            Some(Io::Pipes { .. }) | None => DEFAULT_SIZE,
        };
        let started_at = subject.events.first().map(|record| record.at);
        let mut header = json!({
            "version": 2,
            "width": size.cols,
            "height": size.rows,
            "timestamp": started_at.map_or(0, Timestamp::as_second),
        });
        if let Some(spec) = subject.spec {
            header["command"] = spec.command.display().into();
            if !spec.description.is_empty() {
                header["title"] = spec.description.clone().into();
            }
        }
        writeln!(out, "{header}")?;
        let label = subject.spec.and_then(|spec| spec.encoding.as_deref());
        let encoding = label.and_then(|label| encoding_for_label(label).ok());
        let encoding = encoding.unwrap_or(Encoding::UTF_8);
        Ok(Self {
            out,
            started_at,
            decoders: std::array::from_fn(|_| Decoder::new(encoding)),
            after_cr: [false; 3],
        })
    }

    fn write_event(&mut self, at: Timestamp, code: &str, data: &str) -> Result<(), ExportError> {
        let started_at = *self.started_at.get_or_insert(at);
        let nanoseconds = (at.as_nanosecond() - started_at.as_nanosecond()).max(0);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a recording's times are seconds as floats"
        )]
        let seconds = nanoseconds as f64 / NANOSECONDS;
        writeln!(self.out, "{}", json!([seconds, code, data]))?;
        Ok(())
    }

    fn write_output(
        &mut self,
        at: Timestamp,
        stream_index: usize,
        bytes: &[u8],
    ) -> Result<(), ExportError> {
        let text = self.decoders[stream_index].push(bytes);
        self.write_text(at, stream_index, &text)
    }

    fn write_text(
        &mut self,
        at: Timestamp,
        stream_index: usize,
        text: &str,
    ) -> Result<(), ExportError> {
        const TERMINAL: usize = 2;
        if text.is_empty() {
            return Ok(());
        }
        if stream_index == TERMINAL {
            return self.write_event(at, "o", text);
        }
        // Without a terminal, no line discipline has inserted a carriage return before newlines.
        let mut converted = String::with_capacity(text.len() + 16);
        for character in text.chars() {
            if character == '\n' && !self.after_cr[stream_index] {
                converted.push('\r');
            }
            converted.push(character);
            self.after_cr[stream_index] = character == '\r';
        }
        self.write_event(at, "o", &converted)
    }

    /// Writes what the decoders held back.
    pub(crate) fn finish(&mut self) -> Result<(), ExportError> {
        let at = self.started_at.unwrap_or(Timestamp::UNIX_EPOCH);
        for stream_index in 0..self.decoders.len() {
            let rest = self.decoders[stream_index].finish();
            self.write_text(at, stream_index, &rest)?;
        }
        Ok(())
    }
}

impl<W: Write> EntrySink for CastSink<W> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        match entry {
            ExportEntry::Execution { .. } | ExportEntry::Gap(_) => Ok(()),
            ExportEntry::Event(record) => {
                let Event::Resized { size } = &record.event else {
                    return Ok(());
                };
                self.write_event(record.at, "r", &format!("{}x{}", size.cols, size.rows))
            }
            ExportEntry::Output(chunk) => match chunk.stream {
                StreamName::Stdout => self.write_output(chunk.at, 0, &chunk.bytes),
                StreamName::Stderr => self.write_output(chunk.at, 1, &chunk.bytes),
                StreamName::Pty => self.write_output(chunk.at, 2, &chunk.bytes),
                StreamName::Stdin => {
                    self.write_event(chunk.at, "i", &String::from_utf8_lossy(&chunk.bytes))
                }
            },
        }
    }
}
