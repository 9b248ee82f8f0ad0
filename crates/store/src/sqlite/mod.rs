//! The history in SQLite.

mod connection;
mod list;
mod row_columns;
mod schema;
mod store;

#[cfg(test)]
mod tests;

pub(crate) use store::FoldPosition;
pub use store::HistoryStore;
