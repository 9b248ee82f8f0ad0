//! The event feed: the events of all executions that a caller sees, read from the ledger, so that a
//! reader continues under the next engine at the same position.

use std::ops::Range;
use std::time::Duration;

use ostler_journal::{LedgerCursor, LedgerPage, LedgerReader, LedgerRecord};
use ostler_model::{Caller, ExecutionId, Timestamp};
use tokio::time::{Instant, sleep_until};

use super::Engine;
use crate::error::Error;

/// The most ledger entries that are read at a time; the page reports where to continue.
pub const SCANNED_EVENTS: usize = 1_000;
/// How long one call reads on where none of the entries is of the query.
const SCAN_TIME: Duration = Duration::from_secs(1);

/// Selects events.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventFeedQuery {
    /// The position to continue from; none begins now, or with the oldest kept entry where `since`
    /// or `execution` is set.
    pub start: Option<LedgerCursor>,
    /// Only events of this time or later.
    pub since: Option<Timestamp>,
    /// Only events of this execution.
    pub execution: Option<ExecutionId>,
}

/// One page of events, and where to continue.
#[derive(Debug, Clone)]
pub struct EventFeedPage {
    /// The records: oldest first, or newest first where those before a position were asked for.
    pub records: Vec<LedgerRecord>,
    /// The numbers of entries, of any caller, that cannot be read because the ledger is damaged; in
    /// the order of the records.
    pub damaged: Vec<Range<u64>>,
    /// The position after everything that was scanned.
    pub next: LedgerCursor,
    /// Whether more entries exist already.
    pub has_more: bool,
}

impl EventFeedPage {
    /// Leaves out records after the first `limit` of a page that is read oldest first.
    pub fn truncate(&mut self, limit: usize) {
        let Some(left_out) = self.records.get(limit).map(|record| record.seq) else {
            return;
        };
        self.next = LedgerCursor(left_out);
        self.records.truncate(limit);
        self.damaged.retain(|range| range.end <= left_out);
        self.has_more = true;
    }
}

impl EventFeedQuery {
    fn start_cursor(&self, end: u64) -> LedgerCursor {
        let reads_history = self.since.is_some() || self.execution.is_some();
        let start = if reads_history { 0 } else { end };
        // A position beyond the end belongs to another ledger.
        LedgerCursor(self.start.map_or(start, |from| from.0.min(end)))
    }

    fn matches(&self, record: &LedgerRecord, caller: &Caller) -> bool {
        let entry = &record.entry;
        self.since.is_none_or(|since| entry.at >= since)
            && (self.execution.is_none() || self.execution == entry.execution)
            && caller.can_access(&entry.by)
    }
}

impl Engine {
    /// Lifecycle events that the caller sees, refused starts among them; where there are none yet,
    /// waits for them for at most `timeout`. A page is of [`SCANNED_EVENTS`] entries at most; it is
    /// empty, with more to come, only where reading others took a second and `timeout`.
    ///
    /// # Errors
    /// [`Error::Output`] when the ledger cannot be read, [`Error::Closing`].
    pub async fn poll_events(
        &self,
        caller: &Caller,
        query: EventFeedQuery,
        timeout: Duration,
    ) -> Result<EventFeedPage, Error> {
        let deadline = Instant::now() + timeout;
        let scan_end = deadline.max(Instant::now() + SCAN_TIME);
        let mut ledger_end = self.inner.ledger_end.subscribe();
        let mut next = query.start_cursor(*ledger_end.borrow());
        loop {
            let end = *ledger_end.borrow_and_update();
            if next.0 < end {
                let reader = self.inner.ledger_reader().ok_or(Error::Closing)?;
                let LedgerPage {
                    mut records,
                    next: after,
                    damaged,
                } = read_ledger(reader, next, end).await?;
                next = after;
                records.retain(|record| query.matches(record, caller));
                let has_more = next.0 < end;
                let is_empty = records.is_empty() && damaged.is_empty();
                if has_more && is_empty && Instant::now() < scan_end {
                    continue;
                }
                if has_more || !is_empty {
                    return Ok(EventFeedPage {
                        records,
                        damaged,
                        next,
                        has_more,
                    });
                }
            }
            tokio::select! {
                biased;
                () = self.inner.closing.cancelled() => return Err(Error::Closing),
                changed = ledger_end.changed() => changed.map_err(|_| Error::Closing)?,
                () = sleep_until(deadline) => {
                    return Ok(EventFeedPage {
                        records: Vec::new(),
                        damaged: Vec::new(),
                        next,
                        has_more: false,
                    });
                }
            }
        }
    }
}

impl Engine {
    /// The events before a position that the caller sees, newest first, and where to continue. A
    /// page is of [`SCANNED_EVENTS`] entries at most, and empty as one of [`Engine::poll_events`] is.
    ///
    /// # Errors
    /// As [`Engine::poll_events`].
    pub async fn events_before(
        &self,
        caller: &Caller,
        before: LedgerCursor,
        limit: usize,
    ) -> Result<EventFeedPage, Error> {
        let scan_end = Instant::now() + SCAN_TIME;
        let mut end = (*self.inner.ledger_end.borrow()).min(before.0);
        let (mut records, mut damaged, start, is_first) = loop {
            let start = end.saturating_sub(SCANNED_EVENTS as u64);
            let reader = self.inner.ledger_reader().ok_or(Error::Closing)?;
            let LedgerPage {
                mut records,
                damaged,
                ..
            } = read_ledger(reader, LedgerCursor(start), end).await?;
            let first_record = records.first().map(|record| record.seq);
            let first_damaged = damaged.first().map(|range| range.start);
            let first = first_record.into_iter().chain(first_damaged).min();
            // Older ones were removed, or there are none.
            let is_first = first.is_none_or(|first| first > start) || start == 0;
            records.retain(|record| caller.can_access(&record.entry.by));
            let is_empty = records.is_empty() && damaged.is_empty();
            if is_first || !is_empty || Instant::now() >= scan_end {
                break (records, damaged, start, is_first);
            }
            end = start;
        };
        records.reverse();
        damaged.reverse();
        let has_left_out = records.len() > limit;
        records.truncate(limit);
        let next = match records.last() {
            Some(last) if has_left_out => last.seq,
            Some(_) | None => start,
        };
        damaged.retain(|range| range.start >= next);
        Ok(EventFeedPage {
            records,
            damaged,
            next: LedgerCursor(next),
            has_more: has_left_out || !is_first,
        })
    }
}

/// Reads entries before the published `end` of the ledger.
async fn read_ledger(
    reader: LedgerReader,
    from: LedgerCursor,
    end: u64,
) -> Result<LedgerPage, Error> {
    let reading = tokio::task::spawn_blocking(move || reader.read(from, SCANNED_EVENTS));
    let page = reading.await.map_err(|_| Error::Closing)??;
    Ok(before_end(page, end))
}

/// Entries are in the file before they are published: those beyond the end are of the next page, at
/// which a cursor beyond the end would not continue. Published ones that a read to the end of the
/// file did not find are damaged.
fn before_end(mut page: LedgerPage, end: u64) -> LedgerPage {
    if page.records.len() < SCANNED_EVENTS && page.next.0 < end {
        page.damaged.push(page.next.0..end);
        page.next = LedgerCursor(end);
    }
    page.records.retain(|record| record.seq < end);
    page.damaged.retain(|range| range.start < end);
    if let Some(last) = page.damaged.last_mut() {
        last.end = last.end.min(end);
    }
    page.next = page.next.min(LedgerCursor(end));
    page
}
