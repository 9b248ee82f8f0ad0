//! Why something did not work, within a connection.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// The reason.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server or the connection to it.
    Sql(tokio_postgres::Error),
    /// The server did not answer in time.
    NoAnswer,
    /// The store is being closed.
    Closing,
    /// The tables are not made yet, or not brought up to date.
    NoTables,
    /// As it is reported.
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Something that prevents the use of the server.
    pub(super) fn unusable(reason: impl Into<String>) -> Self {
        Self::Store(StoreError::Unreachable(reason.into()))
    }

    /// Whether the server ended the statement because it took too long.
    pub(super) fn is_statement_timeout(&self) -> bool {
        match self {
            Self::Sql(error) => error.code() == Some(&SqlState::QUERY_CANCELED),
            Self::NoAnswer | Self::Closing | Self::NoTables | Self::Store(_) => false,
        }
    }

    /// Whether a connection that was idle may have failed because it was cut meanwhile.
    pub(super) fn is_of_connection(&self) -> bool {
        match self {
            Self::Sql(_) | Self::NoTables | Self::Store(_) => !self.is_statement_timeout(),
            Self::NoAnswer | Self::Closing => false,
        }
    }

    /// As the callers of the store see it; `place` says which database.
    pub(super) fn into_store_error(self, place: &str) -> StoreError {
        match self {
            Self::Sql(error) => StoreError::Unreachable(format!("{place}: {}", reason(&error))),
            Self::NoAnswer => StoreError::Unreachable(format!("{place} does not answer")),
            Self::Closing => StoreError::Unreachable("it is being closed".to_owned()),
            Self::NoTables => StoreError::Unreachable(format!("{place} has no tables yet")),
            Self::Store(StoreError::Unreachable(reason)) => {
                StoreError::Unreachable(format!("{place}: {reason}"))
            }
            Self::Store(error) => error,
        }
    }
}

/// The message of the server, without its details, which may quote rows; else that of the client.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(of_server) => of_server.message().to_owned(),
        None => error.to_string(),
    }
}
