//! The export formats, and the function that writes them.

use std::io::{self, BufWriter, Write};
use std::str::FromStr;

use ostler_model::{Cursor, EventRecord, ExecutionId, Spec};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::asciicast::CastSink;
use super::avro::AvroSink;
use super::entry::{EntrySink, ExportEntry};
use super::jsonl::JsonlSink;
use super::merge::EntryMerge;
use super::yaml::YamlSink;
use crate::error::ReadError;
use crate::journal::Journal;
use crate::query::ByteQuery;

const BUFFER_BYTES: usize = 256 * 1024;

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A YAML sequence: one item for the execution, each event and each chunk.
    Yaml,
    /// An Avro object container file.
    Avro,
    /// One JSON object per line.
    Jsonl,
    /// The bytes the command printed.
    Text,
    /// An asciicast, version 2.
    Asciicast,
}

/// The error for a word that is not a format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no format: yaml, avro, jsonl, text or asciicast")]
pub struct UnknownFormat(pub String);

/// The execution to be exported.
#[derive(Debug, Clone, Copy)]
pub struct ExportSubject<'a> {
    /// Its id.
    pub id: ExecutionId,
    /// Its specification, where it is known.
    pub spec: Option<&'a Spec>,
    /// Its events.
    pub events: &'a [EventRecord],
}

/// Why an export stopped.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The journal could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
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

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "yaml" => Ok(Self::Yaml),
            "avro" => Ok(Self::Avro),
            "jsonl" => Ok(Self::Jsonl),
            "text" => Ok(Self::Text),
            "asciicast" => Ok(Self::Asciicast),
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Encode(error.to_string())
    }
}

/// Writes the whole journal in a format.
///
/// # Errors
/// When the journal cannot be read or the receiver fails.
pub fn export(
    journal: &Journal,
    subject: &ExportSubject<'_>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let head = ExportEntry::Execution {
        id: subject.id,
        spec: subject.spec,
    };
    let mut merge = EntryMerge::new(journal, subject, Cursor::START);
    match format {
        Format::Text => write_text(journal, &mut out)?,
        Format::Jsonl => {
            let mut sink = JsonlSink(&mut out);
            sink.entry(&head)?;
            merge.run(&mut sink)?;
        }
        Format::Yaml => {
            let mut sink = YamlSink(&mut out);
            sink.entry(&head)?;
            merge.run(&mut sink)?;
        }
        Format::Avro => {
            let mut sink = AvroSink::begin(&mut out)?;
            sink.entry(&head)?;
            merge.run(&mut sink)?;
            sink.finish()?;
        }
        Format::Asciicast => {
            let mut sink = CastSink::begin(&mut out, subject)?;
            merge.run(&mut sink)?;
            sink.finish()?;
        }
    }
    Ok(out.flush()?)
}

/// Writes the output of the command, and nothing else.
fn write_text(journal: &Journal, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut query = ByteQuery::starting_at(Cursor::START);
    loop {
        let page = journal.read(&query)?;
        for chunk in &page.chunks {
            out.write_all(&chunk.bytes)?;
        }
        query.from = page.next;
        if !page.more {
            return Ok(());
        }
    }
}
