//! Errors of the store.

use ostler_journal::ReadError;
use thiserror::Error;

/// Why the history could not be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A newer version of the program wrote the database.
    #[error(
        "{place} has schema version {found}, and this program knows versions up to {known}: the \
         history is off until the newer program runs again"
    )]
    Newer {
        /// The database file, or the schema of a server.
        place: String,
        /// Its version.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// The file is damaged, or is no database.
    #[error("the history is damaged: {0}")]
    Damaged(String),
    /// The database refuses for now: locked, disk full, no permission.
    #[error("the history cannot be used now: {0}")]
    Unavailable(String),
    /// The server cannot be reached, or refuses for now.
    #[error("the history's database cannot be used now: {0}")]
    Unreachable(String),
    /// The history was reset while a group of entries was read.
    #[error("the position in the ledger changed meanwhile")]
    Moved,
    /// SQLite refuses the statement: a table is missing, or the searched text cannot be searched.
    #[error("the history cannot answer: {0}")]
    Statement(String),
    /// The search looked at too many rows.
    #[error("the search was ended after 5 s: narrow it by a time, a project or a session")]
    SearchTimeout,
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] ReadError),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        if matches!(error, rusqlite::Error::SqlInputError { .. }) {
            return Self::Statement(error.to_string());
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string())
            }
            Some(ErrorCode::Unknown) => Self::Statement(error.to_string()),
            Some(ErrorCode::OperationInterrupted) => Self::SearchTimeout,
            Some(_) | None => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}
