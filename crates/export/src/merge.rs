//! Events and output of one journal, merged into one sequence.

use ostler_journal::{ByteQuery, Journal, StreamSet};
use ostler_model::{Cursor, EventRecord};

use crate::entry::{EntrySink, ExportEntry, ExportSubject};
use crate::error::ExportError;

/// Iterates a journal from a cursor on: an event comes before the output at its offset.
#[derive(Debug)]
pub(crate) struct EntryMerge<'a> {
    journal: &'a Journal,
    subject: &'a ExportSubject<'a>,
    cursor: Cursor,
    /// Bytes of output passed on so far.
    bytes: u64,
}

impl<'a> EntryMerge<'a> {
    pub(crate) const fn new(
        journal: &'a Journal,
        subject: &'a ExportSubject<'a>,
        cursor: Cursor,
    ) -> Self {
        Self {
            journal,
            subject,
            cursor,
            bytes: 0,
        }
    }

    pub(crate) const fn cursor(&self) -> Cursor {
        self.cursor
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Passes on everything from the cursor on.
    pub(crate) fn run(&mut self, sink: &mut dyn EntrySink) -> Result<(), ExportError> {
        loop {
            let more = self.emit_page(sink)?;
            if !more {
                return self.emit_events(u64::MAX, sink);
            }
        }
    }

    /// Passes on one page of output with its events; false where nothing follows.
    pub(crate) fn emit_page(&mut self, sink: &mut dyn EntrySink) -> Result<bool, ExportError> {
        let mut query = ByteQuery::starting_at(self.cursor);
        query.streams = StreamSet::ALL;
        let page = self.journal.read(&query)?;
        if let Some(gap) = page.gap {
            self.emit_events(gap.from, sink)?;
            sink.entry(&ExportEntry::Gap(gap))?;
        }
        for chunk in &page.chunks {
            self.emit_events(chunk.offset, sink)?;
            sink.entry(&ExportEntry::Output(chunk))?;
            self.bytes += chunk.bytes.len() as u64;
        }
        self.cursor.offset = page.next.offset;
        Ok(page.more)
    }

    /// Passes on the events at or before `offset`.
    fn emit_events(&mut self, offset: u64, sink: &mut dyn EntrySink) -> Result<(), ExportError> {
        let is_due = |record: &&EventRecord| record.seq >= self.cursor.event;
        let first = self.subject.events.iter().filter(is_due);
        let mut next = self.cursor.event;
        for record in first.take_while(|record| record.offset <= offset) {
            sink.entry(&ExportEntry::Event(record))?;
            next = record.seq + 1;
        }
        self.cursor.event = next;
        Ok(())
    }
}
