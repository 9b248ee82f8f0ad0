//! The history in PostgreSQL.

mod address;
mod changes;
mod connection;
mod database;
mod failure;
mod readers;
mod row_columns;
mod schema;
mod search;
mod settings;
mod values;

#[cfg(test)]
mod tests;

pub use address::{AddressError, PostgresAddress};
pub(crate) use database::PostgresDatabase;
pub use settings::{PasswordSource, PostgresSettings, SchemaName};
