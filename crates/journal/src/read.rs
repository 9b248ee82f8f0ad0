//! Byte queries: raw chunks from a cursor on.

use ostler_model::{Cursor, Timestamp};

use crate::index::{IndexRecord, relative_offset};
use crate::query::{BytePage, ByteQuery, Chunk, Gap};
use crate::record_iter::{ForwardRecords, RecordBlock, RecordStep};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// The time of a record; the maximum where the number is out of range.
pub(crate) fn timestamp(at_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or(Timestamp::MAX)
}

/// Answers a query on one snapshot.
pub(crate) fn page(
    snapshot: &JournalSnapshot<'_>,
    query: &ByteQuery,
) -> Result<BytePage, SegmentError> {
    let until = query.until.unwrap_or(u64::MAX).min(snapshot.end);
    let mut reader = BytePageReader {
        query,
        until,
        remaining: query.max_bytes.max(1),
        page: BytePage {
            chunks: Vec::new(),
            next: query.from,
            gap: None,
            more: false,
            damaged: None,
        },
    };
    let from = query.from.offset.max(snapshot.floor);
    if from > query.from.offset && from <= until {
        reader.skip_gap(Gap {
            from: query.from.offset,
            to: from,
        });
    }
    if from < until {
        reader.run(snapshot)?;
    }
    let mut page = reader.page;
    page.more = page.damaged.is_none() && page.next.offset < until;
    Ok(page)
}

struct BytePageReader<'q> {
    query: &'q ByteQuery,
    until: u64,
    remaining: u64,
    page: BytePage,
}

impl BytePageReader<'_> {
    fn run(&mut self, snapshot: &JournalSnapshot<'_>) -> Result<(), SegmentError> {
        let from = self.page.next.offset;
        let mut forward = ForwardRecords::new(snapshot, from)?;
        let mut block = RecordBlock::default();
        loop {
            match forward.next_block(&mut block)? {
                RecordStep::Block => {
                    if !self.append_block(&block) {
                        return Ok(());
                    }
                }
                RecordStep::Gap(gap) => {
                    if !self.page.chunks.is_empty() {
                        return Ok(());
                    }
                    self.skip_gap(gap);
                }
                RecordStep::Damaged(at) => {
                    self.page.damaged = Some(at.max(self.page.next.offset));
                    return Ok(());
                }
                RecordStep::End => return Ok(()),
            }
        }
    }

    /// Continues after a gap.
    fn skip_gap(&mut self, gap: Gap) {
        let from = self.page.gap.map_or(gap.from, |earlier| earlier.from);
        self.page.gap = Some(Gap { from, to: gap.to });
        self.page.next.offset = gap.to;
    }

    /// Adds what belongs on the page; false once it is full.
    fn append_block(&mut self, block: &RecordBlock) -> bool {
        let next = self.page.next.offset;
        if block.first_offset() > next {
            // The requested position is in a gap.
            self.skip_gap(Gap {
                from: next,
                to: block.first_offset(),
            });
        }
        for record in &block.records {
            if record.end() <= self.page.next.offset {
                continue;
            }
            if record.offset >= self.until || self.remaining == 0 {
                return false;
            }
            self.append_record(block, record);
        }
        self.remaining > 0 && self.page.next.offset < self.until
    }

    fn append_record(&mut self, block: &RecordBlock, record: &IndexRecord) {
        let from = self.page.next.offset.max(record.offset);
        let mut to = record.end().min(self.until);
        if self.query.streams.contains(record.stream) {
            to = to.min(from.saturating_add(self.remaining));
            self.remaining -= to - from;
            let range = relative_offset(block.first_offset(), from)
                ..relative_offset(block.first_offset(), to);
            let bytes = &block.bytes[range];
            let last = self.page.chunks.last_mut().filter(|last| {
                self.query.joined
                    && last.stream == record.stream
                    && last.offset + last.bytes.len() as u64 == from
            });
            match last {
                Some(last) => last.bytes.extend_from_slice(bytes),
                None => self.page.chunks.push(Chunk {
                    at: timestamp(record.at_ns),
                    stream: record.stream,
                    offset: from,
                    bytes: bytes.to_vec(),
                }),
            }
        }
        self.page.next = Cursor {
            offset: to,
            event: self.page.next.event,
        };
    }
}
