//! [`PostgresDatabase`]: the connections, and what they are used for.

use ostler_journal::LedgerCursor;
use ostler_model::{Caller, ExecutionId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_postgres::Client;

use super::connection::{Connection, Role, Session};
use super::failure::Failure;
use super::readers::{ReaderSlot, Readers};
use super::search::RowRange;
use super::settings::PostgresSettings;
use super::{changes, schema, search};
use crate::changes::RowChanges;
use crate::conditions;
use crate::database::{CommandKey, FoldPosition, HistoryDatabase, IdCondition};
use crate::error::StoreError;
use crate::query::{HistoryPage, HistoryQuery};
use crate::row::HistoryRow;
use crate::statistics::RunSample;

/// The rows of one ledger in a schema of a server. Connects when it is used, and anew after a
/// failure.
#[derive(Debug)]
pub(crate) struct PostgresDatabase {
    settings: PostgresSettings,
    writer: Mutex<Option<Connection>>,
    readers: Readers,
    closing: watch::Sender<bool>,
}

impl PostgresDatabase {
    /// The history of a ledger.
    pub(crate) fn new(settings: PostgresSettings) -> Self {
        Self {
            settings,
            writer: Mutex::new(None),
            readers: Readers::default(),
            closing: watch::Sender::new(false),
        }
    }

    fn ledger(&self) -> &str {
        &self.settings.ledger
    }

    fn connect(&self, role: Role) -> Result<Connection, Failure> {
        Connection::open(&self.settings, role, &self.closing)
    }

    fn store_error(&self, failure: Failure) -> StoreError {
        failure.into_store_error(self.settings.address.as_str())
    }

    /// Reads; on another connection where one that was idle has been cut.
    fn read<T>(
        &self,
        action: impl AsyncFn(&Client) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let slot = self.readers.take();
        let mut slot = slot.map_err(|failure| self.store_error(failure))?;
        let kept = slot.connection.take();
        let result = match kept.map(|kept| self.read_on(kept, &mut slot, &action)) {
            Some(Err(failure)) if failure.is_of_connection() => self.read_anew(&mut slot, &action),
            Some(result) => result,
            None => self.read_anew(&mut slot, &action),
        };
        result.map_err(|failure| {
            if failure.is_statement_timeout() {
                StoreError::SearchTimeout
            } else {
                self.store_error(failure)
            }
        })
    }

    /// Reads on a new connection, once there are tables.
    fn read_anew<T>(
        &self,
        slot: &mut ReaderSlot<'_>,
        action: &impl AsyncFn(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = self.connect(Role::Reader)?;
        match self.read_on(connection, slot, action) {
            Err(Failure::NoTables) => {
                self.position()?;
                self.read_on(self.connect(Role::Reader)?, slot, action)
            }
            result => result,
        }
    }

    /// Reads on this connection, and keeps it unless it fails.
    fn read_on<T>(
        &self,
        mut connection: Connection,
        slot: &mut ReaderSlot<'_>,
        action: &impl AsyncFn(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // The tables may have changed since the connection was opened. What the check says comes
        // first: it explains why the action fails.
        let result = connection.run(&self.closing, async |session| {
            let client = &session.client;
            let check = schema::check(client, &self.settings);
            let ((), value) = tokio::try_join!(biased; check, action(client))?;
            Ok(value)
        });
        let is_usable = match &result {
            Ok(_) => true,
            Err(failure) => failure.is_statement_timeout(),
        };
        slot.connection = is_usable.then_some(connection);
        result
    }

    /// How far the ledger is folded. Each step of the fold begins with it: so it is here that the
    /// tables are made, and that a connection that was cut is opened anew.
    fn position(&self) -> Result<FoldPosition, Failure> {
        let mut writer = self.writer.lock();
        let was_open = writer.is_some();
        let mut read = || {
            self.write_on(&mut writer, async |session| {
                changes::fold_position(session, &self.settings).await
            })
        };
        match read() {
            Err(failure) if was_open && failure.is_of_connection() => read(),
            result => result,
        }
    }

    /// Writes on the connection of the writer, which is closed where that fails.
    fn write<T>(
        &self,
        action: impl AsyncFnOnce(&mut Session) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer.lock();
        let result = self.write_on(&mut writer, action);
        result.map_err(|failure| self.store_error(failure))
    }

    fn write_on<T>(
        &self,
        writer: &mut Option<Connection>,
        action: impl AsyncFnOnce(&mut Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = match writer {
            Some(connection) => connection,
            None => writer.insert(self.connect(Role::Writer)?),
        };
        let result = connection.run(&self.closing, action);
        if result.is_err() {
            *writer = None;
        }
        result
    }
}

impl HistoryDatabase for PostgresDatabase {
    fn list(&self, query: &HistoryQuery) -> Result<HistoryPage, StoreError> {
        let limit = query.page_limit();
        let range = RowRange {
            limit: limit + 1,
            skip: query.page_skip(),
        };
        let rows = self.read(async |client| {
            let conditions = conditions::of_query(query);
            search::rows(client, self.ledger(), &conditions, range).await
        })?;
        Ok(HistoryPage::of(rows, limit))
    }

    fn find(
        &self,
        caller: &Caller,
        id: &IdCondition<'_>,
    ) -> Result<Option<HistoryRow>, StoreError> {
        let first = RowRange { limit: 1, skip: 0 };
        let rows = self.read(async |client| {
            let conditions = conditions::of_id(caller, id);
            search::rows(client, self.ledger(), &conditions, first).await
        })?;
        Ok(rows.into_iter().next())
    }

    fn command_keys(
        &self,
        ids: &[ExecutionId],
    ) -> Result<Vec<(ExecutionId, CommandKey)>, StoreError> {
        self.read(async |client| search::command_keys(client, self.ledger(), ids).await)
    }

    fn samples(
        &self,
        command: &CommandKey,
        since: Timestamp,
    ) -> Result<Vec<RunSample>, StoreError> {
        self.read(async |client| search::samples(client, self.ledger(), command, since).await)
    }

    fn fold_position(&self) -> Result<FoldPosition, StoreError> {
        self.position().map_err(|failure| self.store_error(failure))
    }

    fn apply(
        &self,
        from: LedgerCursor,
        changes: &RowChanges,
        to: &FoldPosition,
    ) -> Result<(), StoreError> {
        self.write(async |session| changes::apply(session, self.ledger(), from, changes, to).await)
    }

    fn expire(&self, before: Timestamp) -> Result<bool, StoreError> {
        self.write(async |session| changes::expire(session, self.ledger(), before).await)
    }

    fn reset(&self) -> Result<(), StoreError> {
        self.write(async |session| changes::reset(session, self.ledger()).await)
    }

    fn close(&self) {
        self.closing.send_replace(true);
    }
}
