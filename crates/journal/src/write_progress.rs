//! How far a journal has come.

use ostler_model::StreamName;

use crate::index::{IndexRecord, StreamCounters};
use crate::query::stream_code;

/// How far a journal has come: what a writer must know to continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WriteProgress {
    /// The number of the next segment.
    pub(crate) next_number: u32,
    /// The journal's end.
    pub(crate) end: u64,
    /// The newest time stored, in nanoseconds since the Unix epoch.
    pub(crate) at_ns: i64,
    /// The stream counters.
    pub(crate) counters: StreamCounters,
}

impl WriteProgress {
    /// The record for the next chunk, and the progress once it is stored.
    pub(crate) fn next_record(
        &self,
        at_ns: i64,
        stream: StreamName,
        chunk: &[u8],
    ) -> (IndexRecord, Self) {
        let code = usize::from(stream_code(stream));
        let counter = self.counters[code];
        let record = IndexRecord {
            at_ns: at_ns.max(self.at_ns),
            offset: self.end,
            len: u32::try_from(chunk.len()).unwrap_or(u32::MAX),
            line: counter.newlines,
            stream,
            begins_line: !counter.open,
        };
        let mut after = *self;
        after.at_ns = record.at_ns;
        after.end = record.end();
        after.counters[code].add(chunk);
        (record, after)
    }
}
