//! One segment with its index, opened for reading.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::OFlags;

use crate::compress::Frames;
use crate::error::ReadError;
use crate::files::{self, Listed};
use crate::index::{
    CHUNK_BYTES, HEADER_BYTES, Header, HeaderError, RECORD_BYTES, Record, Tallies, VERSION,
};
use crate::memory::Snapshot;

/// A record as it stands in the index.
pub(crate) type RawRecord = [u8; RECORD_BYTES];

/// A segment: numbered records, each speaking for the next bytes of it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) base: u64,
    /// What was before its first byte.
    pub(crate) tallies: Tallies,
    /// Records to be trusted as far as the file's length goes.
    pub(crate) count: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Disk { index: File, bytes: OnceCell<Bytes> },
    Memory(Snapshot),
}

#[derive(Debug)]
enum Bytes {
    Raw(File),
    Framed(Frames),
}

/// Why a segment could not be opened or read.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A file went away since the directory was listed: look again.
    Stale,
    /// The index has no valid header.
    Damaged,
    /// To be told.
    Read(ReadError),
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl Segment {
    pub(crate) fn open(dir: BorrowedFd<'_>, listed: Listed) -> Result<Self, Trouble> {
        let number = listed.number;
        let failed = |error| ReadError::io("read", files::name(number, files::INDEX), error);
        let index = files::open(dir, number, files::INDEX, OFlags::RDONLY).map_err(failed)?;
        let index = index.ok_or(Trouble::Stale)?;
        let mut raw = [0; HEADER_BYTES];
        let filled = files::read_at(&index, &mut raw, 0).map_err(failed)?;
        let header = match Header::decode(&raw[..filled]) {
            Ok(header) if header.number == number => header,
            Ok(_) | Err(HeaderError::Damaged) => return Err(Trouble::Damaged),
            Err(HeaderError::Version(found)) => {
                return Err(Trouble::Read(ReadError::Version {
                    file: files::name(number, files::INDEX),
                    found,
                    known: VERSION,
                }));
            }
        };
        let bytes = index.metadata().map_err(failed)?.len();
        Ok(Self {
            number,
            base: header.base,
            tallies: header.tallies,
            count: bytes.saturating_sub(HEADER_BYTES as u64) / RECORD_BYTES as u64,
            source: Source::Disk {
                index,
                bytes: OnceCell::new(),
            },
        })
    }

    /// The memory segment after a journal's last one.
    pub(crate) fn memory(number: u32, tallies: Tallies, snapshot: Snapshot) -> Self {
        Self {
            number,
            base: snapshot.base(),
            tallies,
            count: snapshot.records().len() as u64,
            source: Source::Memory(snapshot),
        }
    }

    /// Reads up to `buffer.len()` raw records from `first` on; returns how many.
    pub(crate) fn records(
        &self,
        first: u64,
        buffer: &mut Vec<RawRecord>,
        most: usize,
    ) -> Result<(), Trouble> {
        let left = usize::try_from(self.count.saturating_sub(first)).unwrap_or(usize::MAX);
        let wanted = most.min(left);
        buffer.clear();
        match &self.source {
            Source::Disk { index, .. } => {
                buffer.resize(wanted, [0; RECORD_BYTES]);
                let at = HEADER_BYTES as u64 + first * RECORD_BYTES as u64;
                let filled = files::read_at(index, buffer.as_flattened_mut(), at);
                let filled = filled.map_err(|error| self.failed(files::INDEX, error))?;
                buffer.truncate(filled / RECORD_BYTES);
            }
            Source::Memory(snapshot) => {
                let from = usize::try_from(first).unwrap_or(usize::MAX);
                let records = snapshot.records().get(from..).unwrap_or_default();
                buffer.extend_from_slice(&records[..wanted.min(records.len())]);
            }
        }
        Ok(())
    }

    /// One record, decoded; none where it is none.
    pub(crate) fn record(&self, place: u64) -> Result<Option<Record>, Trouble> {
        let mut buffer = Vec::with_capacity(1);
        self.records(place, &mut buffer, 1)?;
        Ok(buffer.first().and_then(Record::decode))
    }

    /// Replaces `buffer` with the bytes from journal offset `from`, `len` of them; fewer where
    /// there are fewer.
    pub(crate) fn bytes(
        &self,
        dir: BorrowedFd<'_>,
        (from, len): (u64, usize),
        buffer: &mut Vec<u8>,
    ) -> Result<(), Trouble> {
        let at = from.saturating_sub(self.base);
        match &self.source {
            Source::Memory(snapshot) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let bytes = snapshot.bytes().get(at..).unwrap_or_default();
                buffer.clear();
                buffer.extend_from_slice(&bytes[..len.min(bytes.len())]);
                Ok(())
            }
            Source::Disk { bytes, .. } => {
                if bytes.get().is_none() {
                    let opened = self.open_bytes(dir)?;
                    bytes.get_or_init(|| opened);
                }
                let bytes = bytes.get().ok_or(Trouble::Stale)?;
                // What the buffer held is written over: a buffer used again costs no zeroing.
                buffer.resize(len, 0);
                let filled = match bytes {
                    Bytes::Raw(file) => files::read_at(file, buffer, at),
                    Bytes::Framed(frames) => frames.read_at(buffer, at),
                };
                let filled = filled.map_err(|error| self.failed(files::SEGMENT, error))?;
                buffer.truncate(filled);
                Ok(())
            }
        }
    }

    /// The chunk of one record, if both are as they were written.
    pub(crate) fn chunk(
        &self,
        dir: BorrowedFd<'_>,
        place: u64,
    ) -> Result<Option<(Record, Vec<u8>)>, Trouble> {
        let mut raw = Vec::with_capacity(1);
        self.records(place, &mut raw, 1)?;
        let Some((raw, record)) = raw
            .first()
            .and_then(|raw| Record::decode(raw).map(|record| (raw, record)))
        else {
            return Ok(None);
        };
        if record.offset < self.base {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.bytes(dir, (record.offset, record.len as usize), &mut bytes)?;
        Ok(Record::is_intact(raw, &bytes).then_some((record, bytes)))
    }

    fn open_bytes(&self, dir: BorrowedFd<'_>) -> Result<Bytes, Trouble> {
        let failed = |error| self.failed(files::SEGMENT, error);
        let open = |suffix| files::open(dir, self.number, suffix, OFlags::RDONLY);
        if let Some(file) = open(files::SEGMENT).map_err(failed)? {
            return Ok(Bytes::Raw(file));
        }
        let file = open(files::COMPRESSED).map_err(failed)?;
        let file = file.ok_or(Trouble::Stale)?;
        Frames::open(file).map(Bytes::Framed).map_err(failed)
    }

    fn failed(&self, suffix: &str, error: io::Error) -> Trouble {
        Trouble::Read(ReadError::io(
            "read",
            files::name(self.number, suffix),
            error,
        ))
    }

    /// Cuts `count` to the records that follow from each other and pass their checksums,
    /// looking only at the last one when that is well.
    pub(crate) fn settle(&mut self, dir: BorrowedFd<'_>, floor: u64) -> Result<(), Trouble> {
        if self.count == 0 {
            return Ok(());
        }
        let last = self.count - 1;
        let intact = match self.record(last)? {
            // The bytes are gone on purpose.
            Some(record) if record.end() <= floor => Some(record),
            Some(_) => self.chunk(dir, last)?.map(|(record, _)| record),
            None => None,
        };
        match intact {
            Some(record) if self.follows(last, &record)? => Ok(()),
            Some(_) | None => self.verify(dir, floor),
        }
    }

    /// Whether the record before `place` ends where `record` begins.
    fn follows(&self, place: u64, record: &Record) -> Result<bool, Trouble> {
        if place == 0 {
            return Ok(record.offset == self.base);
        }
        let before = self.record(place - 1)?;
        Ok(before.is_some_and(|before| before.end() == record.offset))
    }

    /// Looks at every record from the first one not cleared, and cuts at the first bad one.
    pub(crate) fn verify(&mut self, dir: BorrowedFd<'_>, floor: u64) -> Result<(), Trouble> {
        const STEP_RECORDS: usize = 1024;
        let mut expected = self.base;
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        let mut raw = Vec::with_capacity(STEP_RECORDS);
        let mut place = 0;
        while place < self.count {
            self.records(place, &mut raw, STEP_RECORDS)?;
            for raw in &raw {
                let record = Record::decode(raw).filter(|record| record.offset == expected);
                let Some(record) = record else {
                    self.count = place;
                    return Ok(());
                };
                let cleared = record.end() <= floor;
                if !cleared {
                    self.bytes(dir, (record.offset, record.len as usize), &mut bytes)?;
                }
                if !cleared && !Record::is_intact(raw, &bytes) {
                    self.count = place;
                    return Ok(());
                }
                expected = record.end();
                place += 1;
            }
            if raw.is_empty() {
                self.count = place;
            }
        }
        Ok(())
    }

    /// The journal offset after its last record.
    pub(crate) fn end(&self) -> Result<u64, Trouble> {
        if self.count == 0 {
            return Ok(self.base);
        }
        let last = self.record(self.count - 1)?;
        Ok(last.map_or(self.base, |last| last.end()))
    }
}
