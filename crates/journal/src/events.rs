//! `events.jsonl`: a header line, then one event on each line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ostler_model::EventRecord;
use serde::{Deserialize, Serialize};

use crate::durability::Durability;
use crate::error::{ReadError, WriteError};
use crate::regular_file;

/// The file's name in an execution's directory.
pub const EVENTS_FILE: &str = "events.jsonl";
/// The version in the header line.
pub const EVENTS_VERSION: u8 = 1;
const FORMAT: &str = "ostler-events";
/// Readable by the owner only: events reveal typed input.
const EVENTS_MODE: u32 = 0o600;

/// The header line of a JSON lines file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EventsHeader<'a> {
    pub(crate) format: std::borrow::Cow<'a, str>,
    pub(crate) version: u8,
}

/// Appends events. It has one writer: the driver.
///
/// The file is open until its first write and while it is written to, and closed in between: an
/// execution that waits for hours for its next event holds no descriptor.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    /// The file before the first write.
    file: Option<File>,
    bytes: u64,
    line: Vec<u8>,
    durability: Durability,
}

impl EventWriter {
    /// Creates the file in the execution's directory, or recovers it: a torn last line is cut.
    /// Returns the writer and the events in the file.
    ///
    /// # Errors
    /// When the file cannot be opened, read or cut, or has a newer version.
    pub fn open(dir: &Path) -> Result<(Self, Vec<EventRecord>), WriteError> {
        let failed = |action| move |error| WriteError::io(action, EVENTS_FILE, error);
        let path = dir.join(EVENTS_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(EVENTS_MODE)
            .open(&path)
            .map_err(failed("open"))?;
        let text = read(&mut file).map_err(failed("read"))?;
        let (records, valid) = parse(&text)?;
        if valid < text.len() {
            file.set_len(valid as u64).map_err(failed("cut"))?;
        }
        let mut writer = Self {
            path,
            file: Some(file),
            bytes: valid as u64,
            line: Vec::new(),
            durability: Durability::PageCache,
        };
        if valid == 0 {
            // The header is written with the first batch.
            serde_json::to_writer(&mut writer.line, &header())?;
            writer.line.push(b'\n');
        }
        Ok((writer, records))
    }

    /// What its records survive from now on.
    #[must_use]
    pub const fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Appends all records in one write.
    ///
    /// # Errors
    /// When the file system refuses; then none of them was appended.
    pub fn append(&mut self, records: &[EventRecord]) -> Result<(), WriteError> {
        if records.is_empty() {
            return Ok(());
        }
        let pending_len = self.line.len();
        for record in records {
            if let Err(error) = serde_json::to_writer(&mut self.line, record) {
                self.line.truncate(pending_len);
                return Err(error.into());
            }
            self.line.push(b'\n');
        }
        if let Err((action, error)) = self.write() {
            self.line.truncate(pending_len);
            return Err(WriteError::io(action, EVENTS_FILE, error));
        }
        self.bytes += self.line.len() as u64;
        self.line.clear();
        Ok(())
    }
}

impl EventWriter {
    fn write(&mut self) -> Result<(), (&'static str, io::Error)> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new()
                .append(true)
                .open(&self.path)
                .map_err(|error| ("open", error))?,
        };
        let synced = |file: &File| match self.durability {
            Durability::Fsync => file.sync_data(),
            Durability::PageCache => Ok(()),
        };
        let written = file.write_all(&self.line);
        written.and_then(|()| synced(&file)).map_err(|error| {
            // If this fails too, the next writer cuts the torn line.
            drop(file.set_len(self.bytes));
            ("append to", error)
        })
    }
}

/// Reads the events of the execution in this directory, without a torn last line; none where
/// there is no file.
///
/// # Errors
/// When the file cannot be read or has a newer version.
pub fn read_events(dir: &Path) -> Result<Vec<EventRecord>, ReadError> {
    match regular_file::read(&dir.join(EVENTS_FILE)) {
        Ok(text) => parse(&text).map(|(records, _)| records),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(ReadError::io("read", EVENTS_FILE, error)),
    }
}

/// Reads the whole file; an empty file, as the shim creates it, in one system call.
fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut first = [0; 1024];
    let filled = file.read(&mut first)?;
    let mut text = first[..filled].to_vec();
    if filled > 0 {
        file.read_to_end(&mut text)?;
    }
    Ok(text)
}

fn header() -> EventsHeader<'static> {
    EventsHeader {
        format: FORMAT.into(),
        version: EVENTS_VERSION,
    }
}

/// Parses events up to the first invalid line; returns them and their length in bytes.
fn parse(text: &[u8]) -> Result<(Vec<EventRecord>, usize), ReadError> {
    let mut lines = text.split_inclusive(|&byte| byte == b'\n');
    let Some(first) = lines.next().filter(|line| line.ends_with(b"\n")) else {
        return Ok((Vec::new(), 0));
    };
    match serde_json::from_slice::<EventsHeader<'_>>(first) {
        Ok(header) if header.format == FORMAT && header.version > EVENTS_VERSION => {
            return Err(ReadError::Version {
                file: EVENTS_FILE.to_owned(),
                found: header.version,
                known: EVENTS_VERSION,
            });
        }
        Ok(header) if header.format == FORMAT => {}
        Ok(_) | Err(_) => return Ok((Vec::new(), 0)),
    }
    let mut records = Vec::new();
    let mut valid = first.len();
    for line in lines.take_while(|line| line.ends_with(b"\n")) {
        let Ok(record) = serde_json::from_slice::<EventRecord>(line) else {
            break;
        };
        records.push(record);
        valid += line.len();
    }
    Ok((records, valid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::{Event, Timestamp};

    fn record(seq: u64) -> EventRecord {
        EventRecord {
            seq,
            at: Timestamp::UNIX_EPOCH,
            offset: seq * 10,
            event: Event::Started {
                attempt: 1,
                pid: 42,
            },
        }
    }

    #[test]
    fn what_was_appended_is_read_after_every_tear() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, before) = EventWriter::open(dir.path()).unwrap();
        assert!(before.is_empty());
        assert_eq!(read_events(dir.path()).unwrap(), []);
        writer.append(&[record(0), record(1)]).unwrap();
        writer.append(&[record(2)]).unwrap();
        let all = [record(0), record(1), record(2)];
        assert_eq!(read_events(dir.path()).unwrap(), all);
        let path = dir.path().join(EVENTS_FILE);
        let text = std::fs::read(&path).unwrap();
        for cut in 0..=text.len() {
            std::fs::write(&path, &text[..cut]).unwrap();
            let whole = text[..cut].iter().filter(|&&byte| byte == b'\n').count();
            let whole = whole.saturating_sub(1);
            assert_eq!(read_events(dir.path()).unwrap(), all[..whole]);
            let (mut writer, records) = EventWriter::open(dir.path()).unwrap();
            assert_eq!(records, all[..whole]);
            writer.append(&all[whole..]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_newer_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let text = "{\"format\":\"ostler-events\",\"version\":9}\n";
        std::fs::write(dir.path().join(EVENTS_FILE), text).unwrap();
        let error = EventWriter::open(dir.path()).unwrap_err();
        assert!(matches!(error, WriteError::Read(_)), "{error}");
        assert_eq!(
            std::fs::read_to_string(dir.path().join(EVENTS_FILE)).unwrap(),
            text
        );
    }
}
