//! A live, resumable copy of a journal in an export format.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ostler_journal::Journal;
use ostler_journal::atomic_file::{self, PRIVATE_MODE};
use ostler_model::Cursor;
use serde::{Deserialize, Serialize};

use crate::avro::{AvroSink, MARKER_BYTES};
use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::ExportError;
use crate::format::Format;
use crate::jsonl::JsonlSink;
use crate::merge::EntryMerge;
use crate::yaml::YamlSink;

const POSITION_FILE: &str = "mirror.position";

/// The formats that a copy can have.
const LIVE_FORMATS: [Format; 3] = [Format::Yaml, Format::Avro, Format::Jsonl];

/// Keeps `mirror.<format>` in an execution's directory up to date with its journal. It works only
/// when called; its position is saved in the same directory, so that after a crash the copy is
/// truncated to the saved position and continues from there. Output that retention dropped from the
/// journal stays in the copy; of output that was cleared it keeps nothing.
#[derive(Debug)]
pub struct Mirror {
    dir: PathBuf,
    journal: Journal,
    file: File,
    position: MirrorPosition,
}

/// The copied offset, and the length of the copy at that offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct MirrorPosition {
    format: Format,
    cursor: Cursor,
    bytes: u64,
    /// The end of the output that had been cleared when the copy began, as an offset: none of it is
    /// in the copy.
    #[serde(default)]
    cleared_to: u64,
}

impl MirrorPosition {
    const fn at_start(format: Format, cleared_to: u64) -> Self {
        Self {
            format,
            cursor: Cursor::START,
            bytes: 0,
            cleared_to,
        }
    }
}

impl Mirror {
    /// Opens or creates the copy, and continues it. A different format starts a new copy.
    ///
    /// # Errors
    /// When the copy cannot be opened, or `format` cannot be appended to (text and asciicast
    /// cannot).
    pub fn open(dir: &Path, journal: Journal, format: Format) -> Result<Self, ExportError> {
        let name = file_name(format).ok_or(ExportError::NotLive(format))?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(PRIVATE_MODE)
            .open(dir.join(name))?;
        let initial = MirrorPosition::at_start(format, 0);
        let saved_position = read_position(dir)?.filter(|saved| saved.format == format);
        let length = file.metadata()?.len();
        let position = saved_position
            .filter(|saved| saved.bytes <= length)
            .unwrap_or(initial);
        file.set_len(position.bytes)?;
        Ok(Self {
            dir: dir.to_owned(),
            journal,
            file,
            position,
        })
    }

    /// Removes the copies in an execution's directory, in every format; nobody has one open. Returns
    /// whether there was one.
    ///
    /// # Errors
    /// When a copy cannot be removed.
    pub fn remove_all(dir: &Path) -> io::Result<bool> {
        remove_file(&dir.join(POSITION_FILE))?;
        let mut existed = false;
        for name in LIVE_FORMATS.into_iter().filter_map(file_name) {
            existed |= remove_file(&dir.join(name))?;
        }
        Ok(existed)
    }

    /// Copies new data; where output was cleared since the copy began, begins it anew. Returns the
    /// bytes of output copied. `subject.events` holds all events so far; those copied before are
    /// skipped.
    ///
    /// # Errors
    /// When the journal cannot be read or the copy cannot be written; the saved copy stays, and the
    /// next call tries again.
    pub fn advance(&mut self, subject: &ExportSubject<'_>) -> Result<u64, ExportError> {
        let cleared_to = self.journal.cleared_to()?;
        if cleared_to > self.position.cleared_to {
            // Without a position, whatever is left of the copy is cut.
            remove_file(&self.dir.join(POSITION_FILE))?;
            self.position = MirrorPosition::at_start(self.position.format, cleared_to);
        }
        // What a failed call left is cut first.
        self.file.set_len(self.position.bytes)?;
        let mut merge = EntryMerge::new(&self.journal, subject, self.position.cursor);
        let mut out = BufWriter::new(&self.file);
        match self.position.format {
            Format::Yaml => copy(&mut YamlSink(&mut out), self.position, subject, &mut merge)?,
            Format::Jsonl => copy(&mut JsonlSink(&mut out), self.position, subject, &mut merge)?,
            Format::Avro => {
                let mut sink = match self.position.bytes {
                    0 => AvroSink::begin(&mut out)?,
                    bytes => AvroSink::append(&mut out, read_marker(&self.file, bytes)?)?,
                };
                copy(&mut sink, self.position, subject, &mut merge)?;
                sink.finish()?;
            }
            format @ (Format::Text
            | Format::Asciicast
            | Format::AsciicastV3
            | Format::Sarif
            | Format::Junit) => {
                return Err(ExportError::NotLive(format));
            }
        }
        out.flush()?;
        drop(out);
        let (cursor, bytes) = (merge.cursor(), merge.bytes());
        self.save(cursor)?;
        Ok(bytes)
    }

    fn save(&mut self, cursor: Cursor) -> Result<(), ExportError> {
        let position = MirrorPosition {
            cursor,
            bytes: self.file.metadata()?.len(),
            ..self.position
        };
        if position != self.position {
            let path = self.dir.join(POSITION_FILE);
            atomic_file::replace(&path, &serde_json::to_vec(&position)?, PRIVATE_MODE)?;
            self.position = position;
        }
        Ok(())
    }
}

fn copy(
    sink: &mut dyn EntrySink,
    position: MirrorPosition,
    subject: &ExportSubject<'_>,
    merge: &mut EntryMerge<'_>,
) -> Result<(), ExportError> {
    if position.bytes == 0 {
        sink.entry(&ExportEntry::Execution {
            id: subject.id,
            spec: subject.spec,
        })?;
    }
    merge.run(sink)
}

/// The name of a copy's file; none for a format that cannot be appended to.
const fn file_name(format: Format) -> Option<&'static str> {
    match format {
        Format::Yaml => Some("mirror.yaml"),
        Format::Avro => Some("mirror.avro"),
        Format::Jsonl => Some("mirror.jsonl"),
        Format::Text | Format::Asciicast | Format::AsciicastV3 | Format::Sarif | Format::Junit => {
            None
        }
    }
}

/// Removes a file; returns whether it was there.
fn remove_file(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_marker(file: &File, bytes: u64) -> io::Result<[u8; MARKER_BYTES]> {
    let mut marker = [0; MARKER_BYTES];
    file.read_exact_at(&mut marker, bytes.saturating_sub(MARKER_BYTES as u64))?;
    Ok(marker)
}

/// Reads the saved position; none where it is missing or invalid: a new copy is then started.
fn read_position(dir: &Path) -> io::Result<Option<MirrorPosition>> {
    let path = dir.join(POSITION_FILE);
    // A pipe would be waited for.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    match std::fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
