//! Reading a memory segment: the layout of its file, and a copy of the ring at one instant.
//!
//! The file begins with a header (magic number, version, base, tail, head); the ring follows, and
//! after it the stream counters at a head. [`memory_ring`](crate::memory_ring) writes it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use crate::files;
use crate::index::{self, IndexHeader, IndexRecord, RECORD_BYTES, StreamCounter, StreamCounters};
use crate::query::stream_code;
use crate::tail::RawRecord;

/// The size of the memory file in bytes, header included.
pub const MEMORY_BYTES: u64 = 1024 * 1024;

pub(crate) const HEADER_BYTES: u64 = 64;
pub(crate) const RING_BYTES: u64 = MEMORY_BYTES - HEADER_BYTES;
pub(crate) const MAGIC: [u8; 7] = *b"OSTLMEM";
pub(crate) const VERSION: u8 = 1;
pub(crate) const TAIL_AT: u64 = 16;
pub(crate) const HEAD_AT: u64 = 24;
pub(crate) const HEADER_LEN: usize = 32;
/// The offset, after the ring, of the stream counters at a head, encoded like the header of a
/// segment that begins at that position. Files of older writers end with the ring.
pub(crate) const STATE_AT: u64 = MEMORY_BYTES;
/// How often a reader retries to read a state that is being written.
const STATE_READS: usize = 8;

/// The content of a memory segment at one instant.
#[derive(Debug)]
pub(crate) struct RingSnapshot {
    records: Vec<RawRecord>,
    bytes: Vec<u8>,
    base: u64,
    end: u64,
    /// The stream counters at the end, where they are known.
    counters_at_end: Option<StreamCounters>,
}

impl RingSnapshot {
    /// Copies the ring; none where it holds nothing valid.
    pub(crate) fn read(memory: &OwnedFd) -> io::Result<Option<Self>> {
        let file = File::from(memory.try_clone()?);
        let Some((_, marked_head)) = read_bounds(&file)? else {
            return Ok(None);
        };
        // The head that the state names: everything before it is written and counted there.
        let state = read_state(&file)?;
        let head = state.as_ref().map_or(marked_head, |state| state.base);
        let mut ring = vec![0; usize::try_from(RING_BYTES).unwrap_or(0)];
        let filled = files::read_at(&file, &mut ring, HEADER_BYTES)?;
        let Some((tail, _)) = read_bounds(&file)?.filter(|_| filled == ring.len()) else {
            return Ok(None);
        };
        // Data that was overwritten during the copy is before the current tail.
        let tallies = state.map(|state| state.counters);
        Ok(Self::parse(&ring, tail, head, tallies))
    }

    /// Parses the valid records between tail and head; `counters_at_head` has the counters at the head.
    fn parse(
        ring: &[u8],
        tail: u64,
        head: u64,
        counters_at_head: Option<StreamCounters>,
    ) -> Option<Self> {
        let mut records = Vec::new();
        let mut bytes = Vec::new();
        let mut decoded: Vec<IndexRecord> = Vec::new();
        let mut position = tail;
        while position < head && head - position <= RING_BYTES {
            let raw = read_wrapped(ring, position, RECORD_BYTES);
            let Some((raw, record)) = RawRecord::try_from(raw.as_slice())
                .ok()
                .and_then(|raw| IndexRecord::decode(&raw).map(|record| (raw, record)))
            else {
                break;
            };
            let chunk = read_wrapped(ring, position + RECORD_BYTES as u64, record.len as usize);
            let follows = decoded
                .last()
                .is_none_or(|last| last.end() == record.offset);
            if !follows || !IndexRecord::is_intact(&raw, &chunk) {
                break;
            }
            records.push(raw);
            decoded.push(record);
            bytes.extend_from_slice(&chunk);
            position += (RECORD_BYTES + chunk.len()) as u64;
        }
        let (first, last) = (decoded.first()?, decoded.last()?);
        Some(Self {
            base: first.offset,
            end: last.end(),
            counters_at_end: counters_at_head.filter(|_| position == head),
            records,
            bytes,
        })
    }

    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The stream counters before the first record. Where those at the end are unknown, the records
    /// give the number of lines; the number of bytes is unknown.
    pub(crate) fn tallies(&self) -> StreamCounters {
        let mut tallies = self.counters_at_end.unwrap_or_default();
        for record in self.records.iter().rev().filter_map(IndexRecord::decode) {
            let tally = &mut tallies[usize::from(stream_code(record.stream))];
            *tally = StreamCounter {
                bytes: tally.bytes.saturating_sub(u64::from(record.len)),
                newlines: record.line,
                open: !record.begins_line,
            };
        }
        tallies
    }

    /// Without the records that end at or before `offset`; none where no other is left.
    pub(crate) fn without_before(mut self, offset: u64) -> Option<Self> {
        let ends_before =
            |raw: &RawRecord| IndexRecord::decode(raw).is_some_and(|record| record.end() <= offset);
        let dropped = self
            .records
            .iter()
            .take_while(|raw| ends_before(raw))
            .count();
        let first = self.records.get(dropped).and_then(IndexRecord::decode)?;
        self.records.drain(..dropped);
        let bytes = usize::try_from(first.offset - self.base).unwrap_or(self.bytes.len());
        self.bytes.drain(..bytes);
        self.base = first.offset;
        Some(self)
    }

    pub(crate) fn records(&self) -> &[RawRecord] {
        &self.records
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

pub(crate) const fn state_header(head: u64, tallies: StreamCounters) -> IndexHeader {
    IndexHeader {
        number: 0,
        base: head,
        counters: tallies,
    }
}

/// Reads a head and the stream counters there; none in a file of an older writer.
fn read_state(file: &File) -> io::Result<Option<IndexHeader>> {
    let mut raw = [0; index::HEADER_BYTES];
    for _ in 0..STATE_READS {
        if files::read_at(file, &mut raw, STATE_AT)? < raw.len() {
            return Ok(None);
        }
        if let Ok(state) = IndexHeader::decode(&raw) {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

/// Reads the tail and the head, if this is a memory segment.
fn read_bounds(file: &File) -> io::Result<Option<(u64, u64)>> {
    let mut header = [0; HEADER_LEN];
    let is_complete = files::read_at(file, &mut header, 0)? == HEADER_LEN;
    if !is_complete || header[..7] != MAGIC || header[7] != VERSION {
        return Ok(None);
    }
    let [.., tail, head] =
        [0, 8, 16, 24].map(|at| header[at..at + 8].try_into().map_or(0, u64::from_le_bytes));
    Ok(Some((tail, head)))
}

/// Copies a part of the ring, which may wrap around, into contiguous memory.
fn read_wrapped(ring: &[u8], position: u64, len: usize) -> Vec<u8> {
    let at = usize::try_from(position % RING_BYTES).unwrap_or(0);
    let first = len.min(ring.len() - at);
    let mut bytes = ring[at..at + first].to_vec();
    bytes.extend_from_slice(&ring[..(len - first).min(ring.len())]);
    bytes
}
