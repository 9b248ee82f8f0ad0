//! The history of executions in SQL: one row each, with search, pages and statistics.
//!
//! The rows are a fold of the ledger (`RowChange`), and nothing else writes them: the database can
//! be deleted, and is made again. Every failure of it costs lateness and no execution
//! (`docs/design/025-history-store.md`).
//!
//! Must never know of the engine, processes or HTTP. Its interface blocks; the client of PostgreSQL
//! brings an async runtime, which stays within `postgres`.
#![forbid(unsafe_code)]

mod changes;
mod conditions;
mod database;
mod error;
mod fingerprint;
mod fold;
mod postgres;
mod query;
mod row;
mod sql_values;
mod sqlite;
mod statistics;
mod store;
mod updater;

#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use fingerprint::Fingerprint;
pub use postgres::{AddressError, PasswordSource, PostgresAddress, PostgresSettings, SchemaName};
pub use query::{HistoryPage, HistoryQuery, HistoryStatus, LISTED_ROWS_MAX, SKIPPED_ROWS_MAX};
pub use row::{HistoryRow, RunTotals};
pub use statistics::{RunStatistics, STATISTICS_DAYS, STATISTICS_RUNS_MIN};
pub use store::HistoryStore;
pub use updater::{HistoryUpdater, UpdateOutcome};
