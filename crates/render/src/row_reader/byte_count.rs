//! Counts the bytes of lines that are not read.

use ostler_journal::{ByteQuery, Journal, JournalLine, LineQuery, ReadError, Stats, StreamSet};
use ostler_model::Cursor;

/// The most bytes scanned to count those of one stream among others.
const COUNT_BYTES: u64 = 32 * 1024 * 1024;

/// Bytes of a line as the command printed it, including its end.
pub(super) fn line_bytes(line: &JournalLine) -> u64 {
    line.bytes.len() as u64 + line.clipped + u64::from(line.terminated)
}

/// Counts the bytes between lines of one stream.
pub(super) struct ByteCounter<'j> {
    journal: &'j Journal,
    streams: StreamSet,
    stats: Stats,
}

impl<'j> ByteCounter<'j> {
    pub(super) fn new(journal: &'j Journal, streams: StreamSet) -> Result<Self, ReadError> {
        Ok(Self {
            journal,
            streams,
            stats: journal.stats()?,
        })
    }

    /// Bytes from the end of `line` to `until`, the start of a later one; none where counting would
    /// take too long. Offsets count the bytes of all streams.
    pub(super) fn bytes_between(
        &self,
        line: &JournalLine,
        until: u64,
    ) -> Result<Option<u64>, ReadError> {
        let used_streams = self.stats.streams.iter().filter(|stream| stream.bytes > 0);
        if used_streams.count() == 1 {
            return Ok(Some(until.saturating_sub(line.offset + line_bytes(line))));
        }
        if until.saturating_sub(line.offset) > COUNT_BYTES {
            return Ok(None);
        }
        let from_line = self.count_bytes(line.offset, until)?;
        Ok(Some(from_line.saturating_sub(line_bytes(line))))
    }

    fn count_bytes(&self, from: u64, until: u64) -> Result<u64, ReadError> {
        let mut next = Cursor {
            offset: from,
            event: 0,
        };
        let mut sum = 0;
        loop {
            let page = self.journal.read(&ByteQuery {
                until: Some(until),
                streams: self.streams,
                joined: true,
                ..ByteQuery::starting_at(next)
            })?;
            sum += page
                .chunks
                .iter()
                .map(|chunk| chunk.bytes.len() as u64)
                .sum::<u64>();
            if !page.more || page.next.offset <= next.offset || page.next.offset >= until {
                return Ok(sum);
            }
            next = page.next;
        }
    }

    /// The total of the streams, where `query` selects all of it and all is kept.
    pub(super) fn total_if_unbounded(&self, query: &LineQuery) -> Option<u64> {
        let unbounded = query.from.is_none()
            && query.until_cursor.is_none()
            && query.since.is_none()
            && query.until.is_none()
            && query.tail.is_none();
        let bytes = self
            .streams
            .iter()
            .map(|s| self.stats.for_stream(s).bytes)
            .sum();
        (unbounded && self.stats.dropped_bytes == 0).then_some(bytes)
    }
}
