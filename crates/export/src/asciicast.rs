//! The asciicast formats of asciinema: version 2, which every player reads, and version 3, whose
//! times are intervals and which ends with the exit status.

use std::borrow::Cow;
use std::io::Write;

use ostler_journal::{Decoder, Encoding, encoding_for_label};
use ostler_model::{Event, Io, StreamName, TermSize, Timestamp};
use serde_json::json;

use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::ExportError;

/// The terminal size in the header for executions without a terminal.
const DEFAULT_SIZE: TermSize = TermSize { cols: 80, rows: 24 };
const MICROSECONDS: f64 = 1e6;

/// A version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastVersion {
    V2,
    V3,
}

/// Writes entries as events of a recording.
pub(crate) struct CastSink<W: Write> {
    out: W,
    version: CastVersion,
    started_at: Option<Timestamp>,
    /// The time of the last event, in microseconds since the start.
    last_us: i128,
    /// What a shell would show as the exit status, once it has ended.
    exit_status: Option<i32>,
    /// The decoders of stdout, stderr and terminal; each holds back an incomplete character.
    decoders: [Decoder; 3],
    /// Whether the last character of the stream was a carriage return.
    after_cr: [bool; 3],
}

impl<W: Write> CastSink<W> {
    /// Writes the header.
    pub(crate) fn begin(
        mut out: W,
        subject: &ExportSubject<'_>,
        version: CastVersion,
    ) -> Result<Self, ExportError> {
        let size = match subject.spec.map(|spec| &spec.io) {
            Some(Io::Pty { size }) => *size,
            Some(Io::Pipes { .. }) | None => DEFAULT_SIZE,
        };
        let started_at = subject.events.first().map(|record| record.at);
        let timestamp = started_at.map_or(0, Timestamp::as_second);
        let mut header = match version {
            CastVersion::V2 => json!({
                "version": 2,
                "width": size.cols,
                "height": size.rows,
                "timestamp": timestamp,
            }),
            CastVersion::V3 => json!({
                "version": 3,
                "term": {"cols": size.cols, "rows": size.rows},
                "timestamp": timestamp,
            }),
        };
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
            version,
            started_at,
            last_us: 0,
            exit_status: None,
            decoders: std::array::from_fn(|_| Decoder::new(encoding)),
            after_cr: [false; 3],
        })
    }

    fn write_event(&mut self, at: Timestamp, code: &str, data: &str) -> Result<(), ExportError> {
        let started_at = *self.started_at.get_or_insert(at);
        let since_start_us = (at.as_nanosecond() - started_at.as_nanosecond()) / 1_000;
        self.write_event_at(since_start_us.max(0), code, data)
    }

    /// Writes an event at a time in microseconds since the start.
    fn write_event_at(&mut self, us: i128, code: &str, data: &str) -> Result<(), ExportError> {
        let time_us = match self.version {
            CastVersion::V2 => us,
            // A clock that was set back makes no negative interval.
            CastVersion::V3 => (us - self.last_us).max(0),
        };
        self.last_us = self.last_us.max(us);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a recording's times are seconds as floats"
        )]
        let seconds = time_us as f64 / MICROSECONDS;
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
        let text = self.terminal_text(stream_index, &text);
        if text.is_empty() {
            return Ok(());
        }
        self.write_event(at, "o", &text)
    }

    /// The text as a terminal shows it.
    fn terminal_text<'t>(&mut self, stream_index: usize, text: &'t str) -> Cow<'t, str> {
        const TERMINAL: usize = 2;
        if stream_index == TERMINAL {
            return text.into();
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
        converted.into()
    }

    /// Writes what the decoders held back, and the end.
    pub(crate) fn finish(&mut self) -> Result<(), ExportError> {
        let last_us = self.last_us;
        for stream_index in 0..self.decoders.len() {
            let rest = self.decoders[stream_index].finish();
            let text = self.terminal_text(stream_index, &rest);
            if !text.is_empty() {
                self.write_event_at(last_us, "o", &text)?;
            }
        }
        match (self.version, self.exit_status) {
            (CastVersion::V3, Some(status)) => {
                self.write_event_at(last_us, "x", &status.to_string())
            }
            (CastVersion::V2, _) | (CastVersion::V3, None) => Ok(()),
        }
    }
}

impl<W: Write> EntrySink for CastSink<W> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        match entry {
            ExportEntry::Execution { .. } | ExportEntry::Gap(_) => Ok(()),
            ExportEntry::Event(record) => {
                if let Event::Finished { ending } = &record.event {
                    self.exit_status = Some(ending.shell_status());
                }
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
