//! What happens, of all executions that a caller sees: read from the ledger, so that a reader goes
//! on under the next engine where it was.

use std::time::Duration;

use ostler_journal::{LedgerCursor, LedgerReader, LedgerRecord};
use ostler_model::{Caller, ExecutionId, Timestamp};
use tokio::time::{Instant, sleep_until};

use crate::engine::Engine;
use crate::error::Error;

/// Entries that one look goes through; where more wait, it answers where to go on.
pub const SCANNED_EVENTS: usize = 1_000;

/// Which events are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct FeedQuery {
    /// Where to go on; none begins now, or with the oldest kept where the query says more.
    pub from: Option<LedgerCursor>,
    /// Only what happened then or later.
    pub since: Option<Timestamp>,
    /// Only what happened to this one.
    pub execution: Option<ExecutionId>,
}

/// Events, and where to go on.
#[derive(Debug, Clone)]
pub struct Feed {
    /// Oldest first.
    pub records: Vec<LedgerRecord>,
    /// The position after all that was looked at.
    pub next: LedgerCursor,
    /// Whether there is more already.
    pub behind: bool,
}

impl FeedQuery {
    fn begin(&self, end: u64) -> LedgerCursor {
        let beyond = self.since.is_some() || self.execution.is_some();
        let begin = if beyond { 0 } else { end };
        // A position of another ledger is none of this one's.
        LedgerCursor(self.from.map_or(begin, |from| from.0.min(end)))
    }

    fn takes(&self, record: &LedgerRecord, caller: &Caller) -> bool {
        let entry = &record.entry;
        self.since.is_none_or(|since| entry.at >= since)
            && (self.execution.is_none() || self.execution == entry.execution)
            && caller.sees(&entry.by)
    }
}

impl Engine {
    /// Lifecycle events that the caller sees, refused starts among them; where there are none
    /// yet, waits for them at most `at_most`. Each call looks at most at [`SCANNED_EVENTS`].
    ///
    /// # Errors
    /// [`Error::Output`] when the ledger cannot be read, [`Error::Closing`].
    pub async fn feed(
        &self,
        caller: &Caller,
        query: FeedQuery,
        at_most: Duration,
    ) -> Result<Feed, Error> {
        let until = Instant::now() + at_most;
        let mut moved = self.core.ledger_end.subscribe();
        let mut next = query.begin(*moved.borrow());
        loop {
            let end = *moved.borrow_and_update();
            if next.0 < end {
                let reader = self.core.ledger_reader().ok_or(Error::Closing)?;
                let (mut records, after) = read(reader, next).await?;
                // Nothing that fits the chain is kept of these.
                next = if records.is_empty() {
                    LedgerCursor(end)
                } else {
                    after
                };
                records.retain(|record| query.takes(record, caller));
                let behind = next.0 < end;
                if behind || !records.is_empty() {
                    return Ok(Feed {
                        records,
                        next,
                        behind,
                    });
                }
            }
            tokio::select! {
                biased;
                () = self.core.closing.cancelled() => return Err(Error::Closing),
                changed = moved.changed() => changed.map_err(|_| Error::Closing)?,
                () = sleep_until(until) => {
                    return Ok(Feed { records: Vec::new(), next, behind: false });
                }
            }
        }
    }
}

async fn read(
    reader: LedgerReader,
    from: LedgerCursor,
) -> Result<(Vec<LedgerRecord>, LedgerCursor), Error> {
    let reading = tokio::task::spawn_blocking(move || reader.read(from, SCANNED_EVENTS));
    Ok(reading.await.map_err(|_| Error::Closing)??)
}
