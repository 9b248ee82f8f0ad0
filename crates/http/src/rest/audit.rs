//! The audit log: its entries, and whether it was changed.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ostler_api::{AuditEntryBody, AuditPageBody};
use ostler_engine::{Error, EventFeedPage, EventFeedQuery, LEDGER_HEADS};
use ostler_interface::convert::damaged_entries;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};
use ostler_journal::{AuditReport, HeadKey, LedgerCursor, LedgerRecord, ReadError};
use tokio::task::spawn_blocking;

use super::caller::{RequestCaller, require_daemon_user};
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;

/// The most entries of one page.
const ENTRIES_LIMIT: i64 = 1_000;
/// Entries of a page by default.
const ENTRIES: i64 = 100;

const PAGE: &[Parameter] = &[
    Parameter::optional(
        "from",
        ParameterKind::Integer(0, i64::MAX),
        "The `next` of the page before; absent: the oldest entry that is kept",
    ),
    Parameter::optional(
        "before",
        ParameterKind::Integer(0, i64::MAX),
        "Newest first, beginning below this number: the `next` of the page before, or the largest \
         number for the newest entry; not with `from`",
    ),
    Parameter::optional(
        "limit",
        ParameterKind::Integer(1, ENTRIES_LIMIT),
        "At most so many",
    )
    .with_default(ENTRIES),
];

/// `GET /api/v1/audit`: the entries of the audit log that the caller sees.
pub(super) async fn entries(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<AuditPageBody>> {
    let arguments = query_string.check(PAGE)?;
    let (from, before) = (arguments.count("from"), arguments.count("before"));
    let limit = arguments.count("limit").unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if let Some(before) = before {
        if from.is_some() {
            let message = "parameters 'from' and 'before' were both given; allowed: one of them";
            return Err(HttpProblem::value(message));
        }
        let reading = state
            .engine
            .events_before(&caller, LedgerCursor(before), limit);
        return Ok(Json(page_body(reading.await?)));
    }
    let query = EventFeedQuery {
        start: Some(LedgerCursor(from.unwrap_or_default())),
        ..EventFeedQuery::default()
    };
    let reading = state.engine.poll_events(&caller, query, Duration::ZERO);
    let mut page = reading.await?;
    page.truncate(limit);
    Ok(Json(page_body(page)))
}

fn page_body(page: EventFeedPage) -> AuditPageBody {
    AuditPageBody {
        entries: page.records.into_iter().map(entry_body).collect(),
        damaged: page.damaged.into_iter().map(damaged_entries).collect(),
        next: page.next.0,
        more: page.has_more,
    }
}

fn entry_body(record: LedgerRecord) -> AuditEntryBody {
    let LedgerRecord { seq, entry, hash } = record;
    AuditEntryBody {
        seq,
        hash,
        at: entry.at,
        execution: entry.execution,
        by: entry.by,
        event: entry.event,
        detail: entry.detail,
    }
}

/// `GET /api/v1/audit/verify`: verifies the audit log: what `ostler audit verify --json` prints.
/// The whole log is read, so there is one verification at a time. For the daemon's user.
pub(super) async fn verify(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<AuditReport>> {
    query_string.check(&[])?;
    require_daemon_user(&caller, "audit log", "verified")?;
    let settings = state.engine.settings();
    let heads = settings.state_dir.join(LEDGER_HEADS);
    let key_file = settings.audit_key_file.clone();
    let ledger = state.engine.ledger().ok_or(Error::Closing)?;
    let turn = Arc::clone(&state.verification).lock_owned();
    let turn = state.unless_shutting_down(turn).await?;
    let verify = move || {
        // Held until it is done, also when the client is gone.
        let _turn = turn;
        let key = key_file.map(|path| HeadKey::read(&path)).transpose()?;
        ledger.independent().audit(&heads, key.flatten().as_ref())
    };
    let report: Result<AuditReport, ReadError> =
        spawn_blocking(verify).await.map_err(|_| Error::Closing)?;
    Ok(Json(report?))
}
