//! The timeline of a terminal besides its output bytes, in order: size changes, attempts, and
//! dropped output.
//!
//! Events contain the same, but an event reaches the disk a moment after it happened, and a screen
//! must not be parsed past a size change that is not known yet.

use std::collections::VecDeque;
use std::path::Path;

use ostler_journal::{ReadError, read_events};
use ostler_model::{Event, EventRecord, TermSize};
use parking_lot::Mutex;

/// The most changes of one execution in memory; older ones are read from its events.
const TIMELINE_MAX: usize = 1_024;

/// One change of a terminal at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalChange {
    pub(crate) offset: u64,
    pub(crate) kind: TerminalChangeKind,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalChangeKind {
    /// It was resized.
    Resized(TermSize),
    /// Its program ended; output after that belongs to the next attempt, on a new terminal.
    AttemptEnded,
}

/// The terminal changes of one execution.
#[derive(Debug)]
pub(crate) struct Timeline(Mutex<TimelineState>);

#[derive(Debug)]
struct TimelineState {
    changes: VecDeque<TerminalChange>,
    /// The number of the first change in memory.
    first: u64,
    /// Whether every change is in memory.
    complete: bool,
    /// The end of the newest range of output that was dropped.
    dropped_to: u64,
}

impl TimelineState {
    fn push(&mut self, change: TerminalChange) {
        if self.changes.len() == TIMELINE_MAX {
            self.changes.pop_front();
            self.first += 1;
            self.complete = false;
        }
        self.changes.push_back(change);
    }

    fn apply(&mut self, record: &EventRecord) {
        if let Event::Trimmed { to, .. } = &record.event {
            self.dropped_to = self.dropped_to.max(*to);
        }
        if let Some(change) = change_of(record) {
            self.push(change);
        }
    }
}

fn change_of(record: &EventRecord) -> Option<TerminalChange> {
    let kind = if let Event::Resized { size } = record.event {
        TerminalChangeKind::Resized(size)
    } else if matches!(record.event, Event::Exited { .. }) {
        TerminalChangeKind::AttemptEnded
    } else {
        return None;
    };
    let offset = record.offset;
    Some(TerminalChange { offset, kind })
}

impl Timeline {
    /// The timeline of a new execution.
    pub(crate) const fn new() -> Self {
        Self::with_complete(true)
    }

    /// The timeline of an execution whose events are on disk.
    pub(crate) const fn on_disk() -> Self {
        Self::with_complete(false)
    }

    const fn with_complete(complete: bool) -> Self {
        Self(Mutex::new(TimelineState {
            changes: VecDeque::new(),
            first: 0,
            complete,
            dropped_to: 0,
        }))
    }

    /// Loads the events that an earlier engine recorded.
    pub(crate) fn load(&self, records: &[EventRecord]) {
        let mut inner = self.0.lock();
        for record in records {
            inner.apply(record);
        }
    }

    /// As [`Timeline::load`], only the dropped ranges.
    pub(crate) fn load_dropped(&self, records: &[EventRecord]) {
        let mut inner = self.0.lock();
        for record in records.iter().filter(|it| change_of(it).is_none()) {
            inner.apply(record);
        }
    }

    /// Applies a recorded event. A size is known before it is recorded.
    pub(crate) fn apply(&self, record: &EventRecord) {
        if !matches!(record.event, Event::Resized { .. }) {
            self.0.lock().apply(record);
        }
    }

    /// The terminal is about to be resized; on failure, called again with the former size.
    pub(crate) fn resize(&self, offset: u64, size: TermSize) {
        let kind = TerminalChangeKind::Resized(size);
        self.0.lock().push(TerminalChange { offset, kind });
    }

    /// As [`Timeline::load_dropped`], where that is known already.
    pub(crate) fn set_dropped_to(&self, offset: u64) {
        self.0.lock().dropped_to = offset;
    }

    /// The earliest offset at which the newest contiguous output can begin.
    pub(crate) fn dropped_to(&self) -> u64 {
        self.0.lock().dropped_to
    }

    /// The changes from this number on, and the number to request next.
    pub(crate) fn since(&self, number: u64) -> (Vec<TerminalChange>, u64) {
        let inner = self.0.lock();
        let known = usize::try_from(number.saturating_sub(inner.first)).unwrap_or(usize::MAX);
        let new = inner.changes.iter().skip(known).copied().collect();
        (new, inner.first + inner.changes.len() as u64)
    }

    /// Every change, those on disk included.
    pub(crate) fn all(&self, dir: &Path) -> Result<(Vec<TerminalChange>, u64), ReadError> {
        let (known, next) = self.since(0);
        if self.0.lock().complete {
            return Ok((known, next));
        }
        let mut changes: Vec<TerminalChange> =
            read_events(dir)?.iter().filter_map(change_of).collect();
        let on_disk = changes.clone();
        changes.extend(known.into_iter().filter(|turn| !on_disk.contains(turn)));
        changes.sort_by_key(|turn| turn.offset);
        Ok((changes, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_journal::EventWriter;
    use ostler_model::Timestamp;
    use tempfile::TempDir;

    fn size(cols: u16) -> TermSize {
        TermSize { cols, rows: 24 }
    }

    fn resized(seq: u64, offset: u64) -> EventRecord {
        let cols = u16::try_from(offset % 300 + 1).expect("small");
        EventRecord {
            seq,
            at: Timestamp::UNIX_EPOCH,
            offset,
            event: Event::Resized { size: size(cols) },
        }
    }

    #[test]
    fn beyond_the_limit_the_oldest_are_read_from_disk() {
        let dir = TempDir::new().expect("a directory");
        let turns = Timeline::new();
        let records: Vec<EventRecord> = (0..TIMELINE_MAX as u64 + 5)
            .map(|number| resized(number, number * 10))
            .collect();
        for record in &records {
            turns.resize(
                record.offset,
                size(u16::try_from(record.offset % 300 + 1).unwrap()),
            );
        }
        let (mut writer, _) = EventWriter::open(dir.path()).expect("a file");
        // The newest is not on disk yet.
        writer.append(&records[..records.len() - 1]).expect("room");
        let (all, next) = turns.all(dir.path()).expect("readable");
        assert_eq!(next, TIMELINE_MAX as u64 + 5);
        assert_eq!(
            all,
            records.iter().filter_map(change_of).collect::<Vec<_>>()
        );
        let (new, same) = turns.since(next);
        assert_eq!((new.len(), same), (0, next));
        turns.resize(7, size(7));
        assert_eq!(turns.since(next).0.len(), 1);
    }
}
