//! The segment files of the ledger: lines of JSON, each with a hash over the previous hash and its
//! own text.

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use ostler_model::lower_hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::entry::{LedgerEntry, LedgerRecord};
use crate::error::ReadError;
use crate::regular_file;

/// The version in the header line of each segment.
pub const LEDGER_VERSION: u8 = 1;
const FORMAT: &str = "ostler-ledger";
const SUFFIX: &str = "seg";
/// The hash before the first entry.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// An upper bound of the header line's length in bytes.
const HEADER_MAX_BYTES: u64 = 1024;
const HASH_CHARS: usize = GENESIS.len();
const HASH_FIELD: &str = "{\"hash\":\"";

/// The header line of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentHeader {
    format: Cow<'static, str>,
    version: u8,
    /// The number of the segment's first entry.
    pub(super) first: u64,
    /// The hash before that entry.
    pub(super) prev: String,
}

/// The hashed part of an entry.
#[derive(Serialize)]
struct EntryBody<'a> {
    seq: u64,
    #[serde(flatten)]
    entry: &'a LedgerEntry,
}

#[derive(Deserialize)]
struct LedgerLine {
    hash: String,
    seq: u64,
    #[serde(flatten)]
    entry: LedgerEntry,
}

/// What the file of a segment contains.
#[derive(Debug)]
pub(super) enum SegmentContent {
    /// The file does not exist any more.
    Missing,
    /// No complete line, and not more than a header: a crash interrupted its creation.
    Torn,
    /// Its first line is complete, and no valid header.
    DamagedHeader,
    /// A header and entries.
    Entries(LedgerSegment),
}

/// The content of one segment, as far as its lines are valid.
#[derive(Debug)]
pub(super) struct LedgerSegment {
    pub(super) header: SegmentHeader,
    pub(super) records: Vec<LedgerRecord>,
    /// The position after the last entry of the chain.
    pub(super) end: SegmentPosition,
    /// Whether the chain includes the last whole line.
    pub(super) is_complete: bool,
}

impl SegmentHeader {
    pub(super) fn new(first: u64, prev: String) -> Self {
        Self {
            format: FORMAT.into(),
            version: LEDGER_VERSION,
            first,
            prev,
        }
    }
}

/// Formats the line of an entry; returns it and its hash.
pub(super) fn encode_line(
    seq: u64,
    entry: &LedgerEntry,
    prev: &str,
) -> Result<(Vec<u8>, String), serde_json::Error> {
    let body = serde_json::to_vec(&EntryBody { seq, entry })?;
    let hash = hash(prev, &body);
    let mut line = Vec::with_capacity(body.len() + HASH_CHARS + 16);
    line.extend_from_slice(HASH_FIELD.as_bytes());
    line.extend_from_slice(hash.as_bytes());
    line.extend_from_slice(b"\",");
    line.extend_from_slice(&body[1..]);
    line.push(b'\n');
    Ok((line, hash))
}

fn hash(prev: &str, body: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(prev.as_bytes());
    hasher.update(body);
    lower_hex(&hasher.finalize())
}

/// The hash that a line must have after `prev`; none where it is not in canonical form.
fn expected_hash(line: &[u8], prev: &str) -> Option<String> {
    let rest = line.strip_prefix(HASH_FIELD.as_bytes())?;
    let rest = rest.get(HASH_CHARS..)?.strip_prefix(b"\",")?;
    let mut body = vec![b'{'];
    body.extend_from_slice(rest.strip_suffix(b"\n")?);
    Some(hash(prev, &body))
}

/// The segments in a directory, by number.
pub(super) fn list_segments(dir: &Path) -> Result<Vec<(u64, PathBuf)>, ReadError> {
    let entries = match dir.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(ReadError::io("list", dir.display().to_string(), error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry =
            entry.map_err(|error| ReadError::io("list", dir.display().to_string(), error))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let number = name.strip_suffix(SUFFIX)?.strip_suffix('.')?.parse().ok()?;
            (file_name(number) == name).then_some(number)
        });
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

pub(super) fn file_name(number: u64) -> String {
    format!("{number}.{SUFFIX}")
}

/// Reads the header of a segment and its length in bytes; none where it has no valid one, or does
/// not exist any more.
pub(super) fn read_header(path: &Path) -> Result<Option<(SegmentHeader, u64)>, ReadError> {
    let mut text = Vec::new();
    let read = regular_file::open(path)
        .and_then(|file| file.take(HEADER_MAX_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReadError::io("read", path.display().to_string(), error)),
    }
    match text.split_inclusive(|&byte| byte == b'\n').next() {
        Some(line) if line.ends_with(b"\n") => {
            let header = parse_header(path, line)?;
            Ok(header.map(|header| (header, line.len() as u64)))
        }
        Some(_) | None => Ok(None),
    }
}

fn parse_header(path: &Path, line: &[u8]) -> Result<Option<SegmentHeader>, ReadError> {
    let header = serde_json::from_slice::<SegmentHeader>(line);
    let Some(header) = header
        .ok()
        .filter(|header| header.format == FORMAT && header.version > 0)
    else {
        return Ok(None);
    };
    if header.version > LEDGER_VERSION {
        return Err(ReadError::Version {
            file: path.display().to_string(),
            found: header.version,
            known: LEDGER_VERSION,
        });
    }
    Ok(Some(header))
}

/// A position between two entries of a segment, up to which the chain fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentPosition {
    /// The number of the segment.
    pub(super) segment: u64,
    /// The offset in its file, in bytes.
    pub(super) offset: u64,
    /// The number of the next entry.
    pub(super) seq: u64,
    /// The hash of the entry before it.
    pub(super) hash: String,
}

impl SegmentPosition {
    /// After the damaged header of a segment. No entry follows from it; entries after the first one
    /// follow from the hash that the line before them states.
    const fn after_damaged_header(segment: u64, offset: u64) -> Self {
        Self {
            segment,
            offset,
            seq: 0,
            hash: String::new(),
        }
    }

    /// Whether the number of the next entry is known.
    pub(super) const fn is_known(&self) -> bool {
        !self.hash.is_empty()
    }

    /// Advances by one line; none, and no change, where the line does not fit.
    fn advance(&mut self, line: &[u8]) -> Option<LedgerRecord> {
        let record = parse_after(line, &self.hash).filter(|record| record.seq == self.seq)?;
        self.skip_to(&record, line.len() as u64);
        Some(record)
    }

    /// The position after `record`, whose line ends `bytes` from here.
    fn skip_to(&mut self, record: &LedgerRecord, bytes: u64) {
        self.seq = record.seq + 1;
        self.offset += bytes;
        self.hash.clone_from(&record.hash);
    }
}

/// Parses a line whose hash is the one that it must have after `prev`.
fn parse_after(line: &[u8], prev: &str) -> Option<LedgerRecord> {
    let parsed = serde_json::from_slice::<LedgerLine>(line).ok()?;
    let expected = expected_hash(line, prev)?;
    (expected == parsed.hash).then_some(LedgerRecord {
        seq: parsed.seq,
        entry: parsed.entry,
        hash: expected,
    })
}

/// The hash that a line states, whether or not it is right.
fn stated_hash(line: &[u8]) -> Option<&str> {
    let hash = line
        .strip_prefix(HASH_FIELD.as_bytes())?
        .get(..HASH_CHARS)?;
    std::str::from_utf8(hash).ok()
}

/// Whole lines after a position that do not fit there, in front of the next one that fits.
#[derive(Debug, Default)]
struct DamagedLines {
    count: u64,
    bytes: u64,
    /// The hash that the last of them states.
    hash: Option<String>,
}

impl DamagedLines {
    fn push(&mut self, line: &[u8]) {
        self.count += 1;
        self.bytes += line.len() as u64;
        self.hash = stated_hash(line).map(str::to_owned);
    }

    /// Advances a position over these lines and the next one, where that follows from the hash
    /// which the last of these lines states, or, if lines were inserted, from the position itself.
    /// Returns its record.
    fn resume(&self, position: &mut SegmentPosition, line: &[u8]) -> Option<LedgerRecord> {
        let follows = |prev: &str| parse_after(line, prev);
        let record = self
            .hash
            .as_deref()
            .and_then(follows)
            .filter(|record| record.seq > position.seq)
            .or_else(|| follows(&position.hash).filter(|record| record.seq == position.seq))?;
        position.skip_to(&record, self.bytes + line.len() as u64);
        Some(record)
    }
}

/// Where the reading of a segment ended.
#[derive(Debug)]
pub(super) struct ReadEnd {
    /// The position after the last entry that fits.
    pub(super) position: SegmentPosition,
    /// The number of whole lines after it, of which none fits.
    pub(super) damaged: u64,
}

/// Where the entries of a segment begin; none where it has no complete line, or does not exist any
/// more.
pub(super) fn first_position(
    segment: u64,
    path: &Path,
) -> Result<Option<SegmentPosition>, ReadError> {
    if let Some((header, offset)) = read_header(path)? {
        return Ok(Some(SegmentPosition {
            segment,
            offset,
            seq: header.first,
            hash: header.prev,
        }));
    }
    let first_line = regular_file::open(path).and_then(|file| {
        let mut line = Vec::new();
        BufReader::new(file).read_until(b'\n', &mut line)?;
        Ok(line)
    });
    match first_line {
        Ok(line) if line.ends_with(b"\n") => Ok(Some(SegmentPosition::after_damaged_header(
            segment,
            line.len() as u64,
        ))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ReadError::io("read", path.display().to_string(), error)),
    }
}

/// Reads entries from a position on, and passes them on until `accept` returns false or the file
/// ends. Lines that do not fit the chain are left out: entries go on after them where a line follows
/// from the hash that the damaged line before it states.
pub(super) fn read_from(
    path: &Path,
    mut position: SegmentPosition,
    mut accept: impl FnMut(LedgerRecord) -> bool,
) -> Result<ReadEnd, ReadError> {
    let failed = |error| ReadError::io("read", path.display().to_string(), error);
    let mut damaged = DamagedLines::default();
    let mut file = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ReadEnd {
                position,
                damaged: 0,
            });
        }
        Err(error) => return Err(failed(error)),
    };
    file.seek(SeekFrom::Start(position.offset))
        .map_err(failed)?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(failed)?;
        if !line.ends_with(b"\n") {
            break;
        }
        let record = match damaged.count {
            0 => position.advance(&line),
            _ => damaged.resume(&mut position, &line),
        };
        let Some(record) = record else {
            damaged.push(&line);
            continue;
        };
        damaged = DamagedLines::default();
        if !accept(record) {
            break;
        }
    }
    Ok(ReadEnd {
        position,
        damaged: damaged.count,
    })
}

/// Reads a segment's entries, up to the first that does not fit.
pub(super) fn read_segment(number: u64, path: &Path) -> Result<SegmentContent, ReadError> {
    let text = match regular_file::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(SegmentContent::Missing);
        }
        Err(error) => return Err(ReadError::io("read", path.display().to_string(), error)),
    };
    let mut lines = text
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b"\n"));
    let Some(first) = lines.next() else {
        let is_short = text.len() as u64 <= HEADER_MAX_BYTES;
        return Ok(match is_short {
            true => SegmentContent::Torn,
            false => SegmentContent::DamagedHeader,
        });
    };
    let Some(header) = parse_header(path, first)? else {
        return Ok(SegmentContent::DamagedHeader);
    };
    let mut end = SegmentPosition {
        segment: number,
        offset: first.len() as u64,
        seq: header.first,
        hash: header.prev.clone(),
    };
    let mut records = Vec::new();
    let mut is_complete = true;
    for line in lines {
        let Some(record) = end.advance(line) else {
            is_complete = false;
            break;
        };
        records.push(record);
    }
    Ok(SegmentContent::Entries(LedgerSegment {
        header,
        records,
        end,
        is_complete,
    }))
}
