//! The index: a header, then one fixed-size record for each chunk of output.
//!
//! Pure codec; the layout is described in `docs/design/001-journal-format.md`. The memory segment
//! uses the same records.

use ostler_model::StreamName;

use crate::little_endian::{u32_at, u64_at};
use crate::query::{STREAMS, stream_code};

/// The length of the header in bytes: three records' worth, so that records stay aligned.
pub(crate) const HEADER_BYTES: usize = 96;
/// The length of a record in bytes.
pub(crate) const RECORD_BYTES: usize = 32;
/// The format version.
pub(crate) const VERSION: u8 = 1;
/// The most bytes that one record covers; longer appends are split.
pub(crate) const CHUNK_BYTES: usize = 1024 * 1024;

const MAGIC: [u8; 7] = *b"OSTLIDX";
const RECORD_CHECKSUM_AT: usize = RECORD_BYTES - 4;
const HEADER_CHECKSUM_AT: usize = HEADER_BYTES - 4;
const LINE_MASK: u64 = (1 << 56) - 1;
const BEGINS_LINE: u8 = 0x10;
const STREAM_MASK: u8 = 0x0f;

/// The counters of one stream before some position in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StreamCounter {
    pub(crate) bytes: u64,
    pub(crate) newlines: u64,
    /// Whether the last line has no newline yet.
    pub(crate) open: bool,
}

/// The counters of all streams, by stream code.
pub(crate) type StreamCounters = [StreamCounter; 4];

/// The header of an index file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexHeader {
    /// The number of the segment, as in its name.
    pub(crate) number: u32,
    /// The journal offset of the segment's first byte.
    pub(crate) base: u64,
    /// The counters before the segment.
    pub(crate) counters: StreamCounters,
}

/// Why bytes are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexHeaderError {
    /// Too short, of another format or damaged.
    Damaged,
    /// Of an unknown version.
    Version(u8),
}

/// The record of one chunk of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    /// When it was read from the command, in nanoseconds since the Unix epoch; never decreasing.
    pub(crate) at_ns: i64,
    /// The journal offset of its first byte.
    pub(crate) offset: u64,
    /// Its length in bytes; never 0.
    pub(crate) len: u32,
    /// The number of newlines of its stream before it.
    pub(crate) line: u64,
    pub(crate) stream: StreamName,
    /// Whether its first byte begins a line.
    pub(crate) begins_line: bool,
}

impl StreamCounter {
    /// Counts a chunk.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        self.bytes += bytes.len() as u64;
        self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.open = last != b'\n';
    }
}

impl IndexHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut raw = [0; HEADER_BYTES];
        raw[..7].copy_from_slice(&MAGIC);
        raw[7] = VERSION;
        raw[8..12].copy_from_slice(&self.number.to_le_bytes());
        raw[16..24].copy_from_slice(&self.base.to_le_bytes());
        for (code, counter) in self.counters.iter().enumerate() {
            let at = 24 + code * 16;
            raw[at..at + 8].copy_from_slice(&counter.bytes.to_le_bytes());
            raw[at + 8..at + 16].copy_from_slice(&counter.newlines.to_le_bytes());
            raw[12] |= u8::from(counter.open) << code;
        }
        let sum = crc32fast::hash(&raw[..HEADER_CHECKSUM_AT]);
        raw[HEADER_CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        raw
    }

    pub(crate) fn decode(raw: &[u8]) -> Result<Self, IndexHeaderError> {
        let raw: &[u8; HEADER_BYTES] = raw.try_into().map_err(|_| IndexHeaderError::Damaged)?;
        if raw[..7] != MAGIC {
            return Err(IndexHeaderError::Damaged);
        }
        if raw[7] != VERSION {
            return Err(IndexHeaderError::Version(raw[7]));
        }
        if crc32fast::hash(&raw[..HEADER_CHECKSUM_AT]) != u32_at(raw, HEADER_CHECKSUM_AT) {
            return Err(IndexHeaderError::Damaged);
        }
        let mut counters = StreamCounters::default();
        for (code, counter) in counters.iter_mut().enumerate() {
            counter.bytes = u64_at(raw, 24 + code * 16);
            counter.newlines = u64_at(raw, 32 + code * 16);
            counter.open = raw[12] & (1 << code) != 0;
        }
        Ok(Self {
            number: u32_at(raw, 8),
            base: u64_at(raw, 16),
            counters,
        })
    }
}

impl IndexRecord {
    /// The journal offset after its last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.len as u64)
    }

    /// Encodes this record for the chunk that it covers.
    pub(crate) fn encode(&self, chunk: &[u8]) -> [u8; RECORD_BYTES] {
        let mut raw = [0; RECORD_BYTES];
        raw[..8].copy_from_slice(&self.at_ns.to_le_bytes());
        raw[8..16].copy_from_slice(&self.offset.to_le_bytes());
        raw[16..20].copy_from_slice(&self.len.to_le_bytes());
        raw[20..28].copy_from_slice(&(self.line & LINE_MASK).to_le_bytes());
        raw[27] = stream_code(self.stream) | if self.begins_line { BEGINS_LINE } else { 0 };
        let sum = checksum(&raw, chunk);
        raw[RECORD_CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        raw
    }

    /// Decodes a record; none where the bytes cannot be one. The checksum is not verified.
    pub(crate) fn decode(raw: &[u8; RECORD_BYTES]) -> Option<Self> {
        let tag = raw[27];
        let stream = *STREAMS.get(usize::from(tag & STREAM_MASK))?;
        let len = u32_at(raw, 16);
        if tag & !(STREAM_MASK | BEGINS_LINE) != 0 || len == 0 || len as usize > CHUNK_BYTES {
            return None;
        }
        Some(Self {
            at_ns: i64::from_le_bytes(raw[..8].try_into().ok()?),
            offset: u64_at(raw, 8),
            len,
            line: u64_at(raw, 20) & LINE_MASK,
            stream,
            begins_line: tag & BEGINS_LINE != 0,
        })
    }

    /// Verifies the checksum of a record and its chunk.
    pub(crate) fn is_intact(raw: &[u8; RECORD_BYTES], chunk: &[u8]) -> bool {
        checksum(raw, chunk) == u32_at(raw, RECORD_CHECKSUM_AT)
    }
}

fn checksum(raw: &[u8; RECORD_BYTES], chunk: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&raw[..RECORD_CHECKSUM_AT]);
    sum.update(chunk);
    sum.finalize()
}

/// Converts an offset of the journal to an index into bytes that begin at `base`.
pub(crate) fn relative_offset(base: u64, offset: u64) -> usize {
    usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_survive_the_round_trip(
            at_ns: i64, offset: u64, line in 0..=LINE_MASK, stream in 0usize..4, begins_line: bool,
            chunk in prop::collection::vec(any::<u8>(), 1..300), flip in 0usize..(RECORD_BYTES * 8),
        ) {
            let len = u32::try_from(chunk.len()).unwrap();
            let record = IndexRecord { at_ns, offset, len, line, stream: STREAMS[stream], begins_line };
            let mut raw = record.encode(&chunk);
            prop_assert_eq!(IndexRecord::decode(&raw), Some(record));
            prop_assert!(IndexRecord::is_intact(&raw, &chunk));
            raw[flip / 8] ^= 1 << (flip % 8);
            prop_assert!(!IndexRecord::is_intact(&raw, &chunk));
        }

        #[test]
        fn headers_survive_the_round_trip(number: u32, base: u64, counts: [(u64, u64, bool); 4], flip in 0usize..(HEADER_BYTES * 8)) {
            let counters = counts.map(|(bytes, newlines, open)| StreamCounter { bytes, newlines, open });
            let header = IndexHeader { number, base, counters };
            let mut raw = header.encode();
            prop_assert_eq!(IndexHeader::decode(&raw), Ok(header));
            raw[flip / 8] ^= 1 << (flip % 8);
            prop_assert!(IndexHeader::decode(&raw).is_err());
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert_eq!(IndexRecord::decode(&[0; RECORD_BYTES]), None);
        assert_eq!(IndexRecord::decode(&[0xff; RECORD_BYTES]), None);
    }
}
