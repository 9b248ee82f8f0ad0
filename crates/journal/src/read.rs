//! Byte queries: raw chunks from a cursor on.

use ostler_model::{Cursor, Timestamp};

use crate::index::IndexRecord;
use crate::query::{BytePage, ByteQuery, Chunk, Gap};
use crate::record_iter::{ForwardRecords, RecordBlock, RecordStep, within};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// The time of a record; the maximum where the number is out of range.
pub(crate) fn timestamp(at_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or(Timestamp::MAX)
}

/// Answers a query on one snapshot.
pub(crate) fn page(
    view: &JournalSnapshot<'_>,
    query: &ByteQuery,
) -> Result<BytePage, SegmentError> {
    let until = query.until.unwrap_or(u64::MAX).min(view.end);
    let mut reader = Reader {
        query,
        until,
        left: query.max_bytes.max(1),
        page: BytePage {
            chunks: Vec::new(),
            next: query.from,
            gap: None,
            more: false,
            damaged: None,
        },
    };
    let from = query.from.offset.max(view.floor);
    if from > query.from.offset && from <= until {
        reader.gap(Gap {
            from: query.from.offset,
            to: from,
        });
    }
    if from < until {
        reader.run(view)?;
    }
    let mut page = reader.page;
    page.more = page.damaged.is_none() && page.next.offset < until;
    Ok(page)
}

struct Reader<'q> {
    query: &'q ByteQuery,
    until: u64,
    left: u64,
    page: BytePage,
}

impl Reader<'_> {
    fn run(&mut self, view: &JournalSnapshot<'_>) -> Result<(), SegmentError> {
        let from = self.page.next.offset;
        let mut forward = ForwardRecords::new(view, view.locate(from)?);
        let mut block = RecordBlock::default();
        loop {
            match forward.step(&mut block)? {
                RecordStep::Block => {
                    if !self.take(&block) {
                        return Ok(());
                    }
                }
                RecordStep::Gap(gap) => {
                    if !self.page.chunks.is_empty() {
                        return Ok(());
                    }
                    self.gap(gap);
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
    fn gap(&mut self, gap: Gap) {
        let from = self.page.gap.map_or(gap.from, |known| known.from);
        self.page.gap = Some(Gap { from, to: gap.to });
        self.page.next.offset = gap.to;
    }

    /// Adds what belongs on the page; false once it is full.
    fn take(&mut self, block: &RecordBlock) -> bool {
        let next = self.page.next.offset;
        if block.base() > next {
            // The requested position is in a gap.
            self.gap(Gap {
                from: next,
                to: block.base(),
            });
        }
        for record in &block.records {
            if record.end() <= self.page.next.offset {
                continue;
            }
            if record.offset >= self.until || self.left == 0 {
                return false;
            }
            self.take_record(block, record);
        }
        self.left > 0 && self.page.next.offset < self.until
    }

    fn take_record(&mut self, block: &RecordBlock, record: &IndexRecord) {
        let from = self.page.next.offset.max(record.offset);
        let mut to = record.end().min(self.until);
        if self.query.streams.contains(record.stream) {
            to = to.min(from.saturating_add(self.left));
            self.left -= to - from;
            let range = within(block.base(), from)..within(block.base(), to);
            self.page.chunks.push(Chunk {
                at: timestamp(record.at_ns),
                stream: record.stream,
                offset: from,
                bytes: block.bytes[range].to_vec(),
            });
        }
        self.page.next = Cursor {
            offset: to,
            event: self.page.next.event,
        };
    }
}
