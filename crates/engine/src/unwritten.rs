//! Events and ledger entries that a full disk refused: kept in memory, and written before later
//! ones. Those not written by the end of the daemon are rebuilt from the spec and the exit record,
//! as after a kill.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use ostler_journal::{Durability, EventWriter, Ledger, LedgerEntry, WriteError};
use ostler_model::event::DegradedCapability;
use ostler_model::{Event, EventRecord, ExecutionId};
use ostler_sys::open_files;
use parking_lot::{Mutex, MutexGuard};

use crate::fd_shortage::is_write_out_of_fds;

/// The most queued events of one execution.
const EVENTS_MAX: usize = 1_024;
/// The most ended executions with queued events.
const EXECUTIONS_MAX: usize = 4_096;
/// The most queued ledger entries.
const ENTRIES_MAX: usize = 4_096;

/// The events of one execution that are not in its file yet, in their order.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenEvents(Mutex<Vec<EventRecord>>);

/// Held during a write.
pub(crate) struct UnwrittenEventsGuard<'a>(MutexGuard<'a, Vec<EventRecord>>);

impl UnwrittenEvents {
    /// Locks the queue; a writer of events holds the guard meanwhile.
    pub(crate) fn lock(&self) -> UnwrittenEventsGuard<'_> {
        UnwrittenEventsGuard(self.0.lock())
    }
}

impl UnwrittenEventsGuard<'_> {
    /// Appends the queued events, and after them `records`; where that is refused, nothing has
    /// changed.
    pub(crate) fn append(
        &mut self,
        writer: &mut EventWriter,
        records: &[EventRecord],
    ) -> Result<(), WriteError> {
        if self.0.is_empty() {
            return writer.append(records);
        }
        let all: Vec<EventRecord> = self.0.iter().chain(records).cloned().collect();
        writer.append(&all)?;
        *self.0 = Vec::new();
        Ok(())
    }

    /// Queues events that were refused.
    pub(crate) fn push(&mut self, records: &[EventRecord]) {
        self.0.extend_from_slice(records);
        let excess = self.0.len().saturating_sub(EVENTS_MAX);
        // The oldest are those of the start, which is rebuilt from the spec.
        self.0.drain(..excess);
    }

    /// Whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the queued events of an execution that has no driver any more.
    pub(crate) fn flush(&mut self, dir: &Path, durability: Durability) -> Result<(), WriteError> {
        let open = || EventWriter::open(dir);
        let (writer, _known) = open_files::with_emergency_fds(open, is_write_out_of_fds)?;
        self.append(&mut writer.with_durability(durability), &[])
    }
}

/// Ended executions with queued events.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenExecutions(Mutex<BTreeSet<ExecutionId>>);

impl UnwrittenExecutions {
    /// Their ids.
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeSet<ExecutionId>> {
        self.0.lock()
    }

    /// Adds an execution with queued events whose driver is done.
    pub(crate) fn add(&self, id: ExecutionId) {
        let mut ids = self.0.lock();
        if ids.len() < EXECUTIONS_MAX {
            ids.insert(id);
        }
    }
}

/// Entries that are not in the ledger yet, in their order.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenEntries {
    queue: VecDeque<LedgerEntry>,
    /// The newest entry beyond the limit, and how many there were.
    overflow: Option<(LedgerEntry, u64)>,
}

impl UnwrittenEntries {
    /// Appends the queued entries, and after them `execution`.
    pub(crate) fn append(
        &mut self,
        ledger: &mut Ledger,
        entry: &LedgerEntry,
    ) -> Result<(), WriteError> {
        self.flush(ledger)?;
        ledger.append(entry).map(drop)
    }

    /// Appends the queued entries, and the number of dropped ones. Where that is refused, the rest
    /// stays queued.
    pub(crate) fn flush(&mut self, ledger: &mut Ledger) -> Result<(), WriteError> {
        while let Some(first) = self.queue.front() {
            ledger.append(first)?;
            self.queue.pop_front();
        }
        if let Some((last, count)) = &self.overflow {
            ledger.append(&overflow_entry(last.clone(), *count))?;
            self.overflow = None;
        }
        Ok(())
    }

    /// Queues an entry that was refused.
    pub(crate) fn push(&mut self, entry: &LedgerEntry) {
        if self.queue.len() < ENTRIES_MAX && self.overflow.is_none() {
            self.queue.push_back(entry.clone());
        } else {
            let before = self.overflow.take().map_or(0, |(_, count)| count);
            self.overflow = Some((entry.clone(), before + 1));
        }
    }
}

fn overflow_entry(last: LedgerEntry, count: u64) -> LedgerEntry {
    LedgerEntry {
        execution: None,
        event: Event::Degraded {
            ability: DegradedCapability::Journal,
            detail: format!("{count} later entries could not be kept while the disk was full"),
        },
        detail: std::collections::BTreeMap::new(),
        ..last
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::{Owner, Principal, RequestChannel, Timestamp};

    use super::*;

    fn started(seq: u64) -> EventRecord {
        EventRecord {
            seq,
            at: Timestamp::UNIX_EPOCH,
            offset: 0,
            event: Event::Started { attempt: 1, pid: 7 },
        }
    }

    fn entry() -> LedgerEntry {
        LedgerEntry {
            at: Timestamp::UNIX_EPOCH,
            execution: None,
            by: Owner {
                principal: Principal::unix(1_000),
                project: None,
                session: None,
                task: None,
                channel: RequestChannel::Local,
            },
            event: Event::Started { attempt: 1, pid: 7 },
            detail: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn events_that_waited_come_before_the_next_ones() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut writer, _) = EventWriter::open(dir.path()).expect("it opens");
        let unwritten = UnwrittenEvents::default();
        let mut waiting = unwritten.lock();
        waiting.push(&[started(0), started(1)]);
        waiting.append(&mut writer, &[started(2)]).expect("written");
        assert!(waiting.is_empty());
        let read = ostler_journal::read_events(dir.path()).expect("readable");
        assert_eq!(read, [started(0), started(1), started(2)]);
    }

    #[test]
    fn entries_that_waited_are_written_and_those_left_out_are_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut ledger = Ledger::open(dir.path()).expect("it opens");
        let mut unwritten = UnwrittenEntries::default();
        for _ in 0..ENTRIES_MAX + 2 {
            unwritten.push(&entry());
        }
        unwritten
            .append(&mut ledger, &entry())
            .expect("there is room");
        assert_eq!(ledger.end(), ENTRIES_MAX as u64 + 2);
        assert!(ledger.reader().verify().is_ok());
        let newest: String = std::fs::read_dir(dir.path())
            .expect("listed")
            .flatten()
            .filter_map(|it| std::fs::read_to_string(it.path()).ok())
            .collect();
        assert!(newest.contains("2 later entries could not be kept"));
    }

    #[test]
    fn how_many_were_left_out_is_kept_until_it_is_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut unwritten = UnwrittenEntries::default();
        for _ in 0..ENTRIES_MAX + 2 {
            unwritten.push(&entry());
        }
        let mut ledger = Ledger::open(dir.path()).expect("it opens");
        // The disk accepted the queue, and refused the entry that reports the dropped ones.
        unwritten.queue.clear();
        unwritten.push(&entry());
        unwritten.flush(&mut ledger).expect("there is room");
        let actual: String = std::fs::read_dir(dir.path())
            .expect("listed")
            .flatten()
            .filter_map(|it| std::fs::read_to_string(it.path()).ok())
            .collect();
        assert!(actual.contains("3 later entries could not be kept"));
    }
}
