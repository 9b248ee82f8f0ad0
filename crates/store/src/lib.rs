//! The history of executions in SQL: one row each, with search, pages and statistics.
//!
//! The rows are a fold of the ledger (`RowChange`), and nothing else writes them: the database can
//! be deleted, and is made again. Every failure of it costs lateness and no execution
//! (`docs/design/025-history-store.md`).
//!
//! Must never know of the engine, processes, HTTP or an async runtime.
#![forbid(unsafe_code)]

mod error;
mod fingerprint;
mod fold;
mod query;
mod row;
mod sqlite;
mod statistics;
mod updater;

pub use error::StoreError;
pub use fingerprint::Fingerprint;
pub use query::{HistoryPage, HistoryQuery, HistoryStatus, LISTED_ROWS_MAX, SKIPPED_ROWS_MAX};
pub use row::{HistoryRow, RunTotals};
pub use sqlite::HistoryStore;
pub use statistics::{RunStatistics, STATISTICS_DAYS, STATISTICS_RUNS_MIN};
pub use updater::{HistoryUpdater, UpdateOutcome};
