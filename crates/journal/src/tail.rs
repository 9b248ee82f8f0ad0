//! The end of a segment in memory: records that were read and verified once are not read again
//! while the segment's files stay open. Pure.

use crate::index::{IndexRecord, RECORD_BYTES};

/// A record as it is encoded in the index.
pub(crate) type RawRecord = [u8; RECORD_BYTES];

/// The most bytes of output that are kept; where the newest chunk alone is longer, that chunk.
pub(crate) const TAIL_BYTES: usize = 64 * 1024;
/// The most records that are kept.
pub(crate) const TAIL_RECORDS: usize = 1_024;

/// The newest records of a segment with their bytes: contiguous and intact.
#[derive(Debug, Default)]
pub(crate) struct SegmentTail {
    /// The number of its first record.
    first: u64,
    /// The journal offset of its first byte.
    base: u64,
    records: Vec<RawRecord>,
    bytes: Vec<u8>,
}

impl SegmentTail {
    /// The number of its last record, and that record.
    pub(crate) fn last(&self) -> Option<(u64, RawRecord)> {
        let last = self.records.last()?;
        Some((self.first + self.records.len() as u64 - 1, *last))
    }

    /// The journal offset after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Appends the records that follow its last one, with all of their bytes; to an empty tail
    /// those from number `first` on. False, and nothing is appended, where they do not follow from
    /// each other or are not intact.
    pub(crate) fn extend(&mut self, first: u64, records: &[RawRecord], bytes: &[u8]) -> bool {
        let start_offset = match (self.last(), records.first().and_then(IndexRecord::decode)) {
            (_, None) => return records.is_empty() && bytes.is_empty(),
            (Some((last, _)), Some(_)) if last + 1 != first => return false,
            (Some(_), Some(_)) => self.end(),
            (None, Some(record)) => record.offset,
        };
        if !are_intact(start_offset, records, bytes) {
            return false;
        }
        if self.records.is_empty() {
            (self.first, self.base) = (first, start_offset);
        }
        self.records.extend_from_slice(records);
        self.bytes.extend_from_slice(bytes);
        self.trim();
        true
    }

    /// Replaces `buffer` with `count` records from `first` on; false where not all are here.
    pub(crate) fn records(&self, first: u64, count: usize, buffer: &mut Vec<RawRecord>) -> bool {
        let found = first.checked_sub(self.first).and_then(|skip| {
            let skip = usize::try_from(skip).ok()?;
            self.records.get(skip..skip.checked_add(count)?)
        });
        if let Some(found) = found {
            buffer.clear();
            buffer.extend_from_slice(found);
        }
        found.is_some()
    }

    /// Replaces `buffer` with `len` bytes from a journal offset on; false where not all are
    /// here.
    pub(crate) fn bytes(&self, from: u64, len: usize, buffer: &mut Vec<u8>) -> bool {
        let found = from.checked_sub(self.base).and_then(|skip| {
            let skip = usize::try_from(skip).ok()?;
            self.bytes.get(skip..skip.checked_add(len)?)
        });
        if let Some(found) = found {
            buffer.clear();
            buffer.extend_from_slice(found);
        }
        found.is_some()
    }

    /// Drops the older half beyond a limit, so that the cost for each record is small.
    fn trim(&mut self) {
        if self.records.len() <= TAIL_RECORDS && self.bytes.len() <= TAIL_BYTES {
            return;
        }
        let kept_records = count_fitting(&self.records, TAIL_RECORDS / 2, TAIL_BYTES / 2);
        let dropped = self.records.len() - kept_records;
        let bytes: usize = self.records[..dropped].iter().map(length).sum();
        self.records.drain(..dropped);
        self.bytes.drain(..bytes);
        self.first += dropped as u64;
        self.base += bytes as u64;
        self.bytes.shrink_to(TAIL_BYTES);
    }
}

/// The number of records at the end of these that fit; at least one where there is one.
pub(crate) fn count_fitting(records: &[RawRecord], max_records: usize, max_bytes: usize) -> usize {
    let mut bytes = 0;
    let fit = records.iter().rev().take(max_records).take_while(|record| {
        bytes += length(record);
        bytes <= max_bytes
    });
    fit.count().max(usize::from(!records.is_empty()))
}

fn length(record: &RawRecord) -> usize {
    IndexRecord::decode(record).map_or(0, |record| record.len as usize)
}

/// Whether these records cover exactly these bytes, which begin at an offset.
fn are_intact(start_offset: u64, records: &[RawRecord], bytes: &[u8]) -> bool {
    let (mut offset, mut rest) = (start_offset, bytes);
    for raw in records {
        let Some(record) = IndexRecord::decode(raw).filter(|record| record.offset == offset) else {
            return false;
        };
        let Some((chunk, rest_bytes)) = rest.split_at_checked(record.len as usize) else {
            return false;
        };
        if !IndexRecord::is_intact(raw, chunk) {
            return false;
        }
        (offset, rest) = (record.end(), rest_bytes);
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use ostler_model::StreamName;

    use super::*;

    /// The records of consecutive chunks from an offset on, and their bytes.
    fn chunks(offset: u64, chunks: &[&[u8]]) -> (Vec<RawRecord>, Vec<u8>) {
        let mut offset = offset;
        let records = chunks.iter().map(|chunk| {
            let record = IndexRecord {
                at_ns: 1,
                offset,
                len: u32::try_from(chunk.len()).expect("short"),
                line: 0,
                stream: StreamName::Pty,
                begins_line: true,
            };
            offset = record.end();
            record.encode(chunk)
        });
        (records.collect(), chunks.concat())
    }

    #[test]
    fn what_follows_is_taken_over_and_what_does_not_is_refused() {
        let mut tail = SegmentTail::default();
        assert_eq!(tail.last(), None);
        let (records, bytes) = chunks(100, &[b"one", b"two"]);
        assert!(tail.extend(7, &records, &bytes));
        assert_eq!(tail.last(), Some((8, records[1])));
        assert_eq!(tail.end(), 106);
        let (more, behind) = chunks(106, &[b"three"]);
        assert!(!tail.extend(10, &more, &behind), "a record is missing");
        assert!(!tail.extend(9, &more, b"thref"), "not as it was written");
        assert!(!tail.extend(9, &more, b"thre"), "too few bytes");
        assert!(!tail.extend(9, &more, b"threes"), "too many");
        let (gap, after) = chunks(107, &[b"three"]);
        assert!(!tail.extend(9, &gap, &after), "a gap");
        assert!(tail.extend(9, &more, &behind));
        assert!(tail.extend(10, &[], b""), "nothing new");
        let (mut raw, mut text) = (Vec::new(), Vec::new());
        assert!(tail.records(8, 2, &mut raw) && raw == [records[1], more[0]]);
        assert!(tail.bytes(102, 5, &mut text) && text == b"etwot");
        for (first, count) in [(6, 2), (8, 3), (10, 1), (u64::MAX, 1), (8, usize::MAX)] {
            assert!(!tail.records(first, count, &mut raw), "{first} {count}");
        }
        for (from, len) in [(99, 2), (109, 3), (200, 1), (100, usize::MAX)] {
            assert!(!tail.bytes(from, len, &mut text), "{from} {len}");
        }
        assert_eq!((raw.len(), text.len()), (2, 5), "left as they were");
        tail.clear();
        assert_eq!(tail.last(), None);
    }

    #[test]
    fn it_stays_small_and_keeps_the_newest() {
        let mut tail = SegmentTail::default();
        let mut offset = 0;
        for number in 0..5 * TAIL_RECORDS as u64 {
            let (records, bytes) = chunks(offset, &[&[b'x'; 100]]);
            assert!(tail.extend(number, &records, &bytes));
            offset += 100;
            assert!(tail.records.len() <= TAIL_RECORDS && tail.bytes.len() <= TAIL_BYTES);
            assert_eq!(
                (tail.last(), tail.end()),
                (Some((number, records[0])), offset)
            );
        }
        let mut text = Vec::new();
        assert!(tail.bytes(offset - 10_000, 10_000, &mut text));
        let long = vec![b'y'; 2 * TAIL_BYTES];
        let (records, bytes) = chunks(offset, &[&long]);
        assert!(tail.extend(5 * TAIL_RECORDS as u64, &records, &bytes));
        assert_eq!(tail.records.len(), 1, "the newest, however long it is");
        assert!(tail.bytes(offset, long.len(), &mut text) && text == long);
    }
}
