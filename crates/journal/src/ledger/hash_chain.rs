//! The segment files of the ledger: lines of JSON, each with a hash over the previous hash and its
//! own text.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use ostler_model::lower_hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::entry::{LedgerEntry, LedgerRecord};
use crate::error::ReadError;

/// The version in the header line of each segment.
pub const LEDGER_VERSION: u8 = 1;
const FORMAT: &str = "ostler-ledger";
const SUFFIX: &str = "seg";
/// The hash before the first entry.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
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

/// The content of one segment, as far as its lines are valid.
#[derive(Debug)]
pub(super) struct LedgerSegment {
    pub(super) header: SegmentHeader,
    pub(super) records: Vec<LedgerRecord>,
    /// The length in bytes of the header and of the whole lines that form a chain.
    pub(super) valid_bytes: u64,
    /// The hash of the last entry of the chain.
    pub(super) last_hash: String,
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

/// Reads the header of a segment; none where it has no valid one, or does not exist any more.
pub(super) fn read_header(path: &Path) -> Result<Option<SegmentHeader>, ReadError> {
    use std::io::Read;
    /// An upper bound of the header line's length in bytes.
    const HEADER_MAX_BYTES: u64 = 1024;
    let mut text = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(HEADER_MAX_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReadError::io("read", path.display().to_string(), error)),
    }
    match text.split_inclusive(|&byte| byte == b'\n').next() {
        Some(line) if line.ends_with(b"\n") => parse_header(path, line),
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

/// Reads a segment's entries, up to the first that does not fit; none where it has no header.
pub(super) fn read_segment(path: &Path) -> Result<Option<LedgerSegment>, ReadError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReadError::io("read", path.display().to_string(), error)),
    };
    let mut lines = text
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b"\n"));
    let Some(first) = lines.next() else {
        return Ok(None);
    };
    let Some(header) = parse_header(path, first)? else {
        return Ok(None);
    };
    let mut segment = LedgerSegment {
        last_hash: header.prev.clone(),
        header,
        records: Vec::new(),
        valid_bytes: first.len() as u64,
        is_complete: true,
    };
    for line in lines {
        if !segment.push_line(line) {
            segment.is_complete = false;
            break;
        }
    }
    Ok(Some(segment))
}

impl LedgerSegment {
    /// The number after its last entry.
    pub(super) fn end(&self) -> u64 {
        self.header.first + self.records.len() as u64
    }

    fn push_line(&mut self, line: &[u8]) -> bool {
        let Ok(line_entry) = serde_json::from_slice::<LedgerLine>(line) else {
            return false;
        };
        let expected = expected_hash(line, &self.last_hash);
        if line_entry.seq != self.end() || expected.as_deref() != Some(line_entry.hash.as_str()) {
            return false;
        }
        self.last_hash.clone_from(&line_entry.hash);
        self.valid_bytes += line.len() as u64;
        self.records.push(LedgerRecord {
            seq: line_entry.seq,
            entry: line_entry.entry,
            hash: line_entry.hash,
        });
        true
    }
}
