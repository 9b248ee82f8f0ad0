//! Events of the ledger.

use std::collections::BTreeMap;
use std::ops::Range;

use ostler_api::{DamagedEntriesBody, EventBody};
use ostler_journal::LedgerRecord;
use ostler_model::Event;

/// Numbers of entries of the ledger, of which there is one at least.
pub fn damaged_entries(numbers: Range<u64>) -> DamagedEntriesBody {
    DamagedEntriesBody {
        first: numbers.start,
        last: numbers.end.saturating_sub(1),
    }
}

/// An entry of the ledger.
pub fn event_body(record: LedgerRecord) -> EventBody {
    let LedgerRecord { seq, entry, .. } = record;
    let (mut request, mut totals) = (entry.detail, BTreeMap::new());
    if matches!(entry.event, Event::Finished { .. }) {
        std::mem::swap(&mut request, &mut totals);
    }
    EventBody {
        cursor: seq + 1,
        at: entry.at,
        id: entry.execution.map(|id| id.short()),
        uuid: entry.execution,
        session: entry.by.session.map(|name| name.0),
        event: entry.event,
        request,
        totals,
    }
}
