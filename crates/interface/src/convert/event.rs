//! Events of the ledger.

use ostler_api::EventBody;
use ostler_journal::LedgerRecord;

/// An entry of the ledger.
pub fn event_body(record: LedgerRecord) -> EventBody {
    let LedgerRecord { seq, entry, .. } = record;
    EventBody {
        cursor: seq + 1,
        at: entry.at,
        id: entry.execution.map(|id| id.short()),
        uuid: entry.execution,
        session: entry.by.session.map(|name| name.0),
        event: entry.event,
        request: entry.detail,
    }
}
