//! The history in SQLite.

mod connection;
mod database;
mod list;
mod row_columns;
mod schema;

#[cfg(test)]
mod tests;

pub(crate) use database::SqliteDatabase;
