//! [`HistoryStore`]: the history, whatever its database.

use std::collections::HashMap;
use std::path::PathBuf;

use ostler_journal::{LedgerCursor, LedgerRecord};
use ostler_model::{Caller, ExecutionId, Principal, Timestamp};

use crate::changes::RowChanges;
use crate::database::{CommandKey, FoldPosition, HistoryDatabase, IdCondition};
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::postgres::{PostgresDatabase, PostgresSettings};
use crate::query::{HistoryPage, HistoryQuery};
use crate::row::HistoryRow;
use crate::sqlite::SqliteDatabase;
use crate::statistics::{RunStatistics, STATISTICS_DAYS};

const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

/// The history. Opens its database when it is used, and anew after it failed. Its methods block.
#[derive(Debug)]
pub struct HistoryStore {
    database: Box<dyn HistoryDatabase>,
}

impl HistoryStore {
    /// The history in this file of SQLite.
    #[must_use]
    pub fn sqlite(file: PathBuf) -> Self {
        Self {
            database: Box::new(SqliteDatabase::new(file)),
        }
    }

    /// The history of one ledger in PostgreSQL. Connects with the first use.
    #[must_use]
    pub fn postgres(settings: PostgresSettings) -> Self {
        Self {
            database: Box::new(PostgresDatabase::new(settings)),
        }
    }

    /// One page of rows that the caller of the query may see.
    ///
    /// # Errors
    /// When the database cannot be read, or the search takes too long.
    pub fn list(&self, query: &HistoryQuery) -> Result<HistoryPage, StoreError> {
        self.database.list(query)
    }

    /// The row of one execution, if the caller may see it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find(&self, caller: &Caller, id: ExecutionId) -> Result<Option<HistoryRow>, StoreError> {
        self.database.find(caller, &IdCondition::Whole(id))
    }

    /// The newest row with this short id, if the caller may see it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find_short(&self, caller: &Caller, id: &str) -> Result<Option<HistoryRow>, StoreError> {
        self.database.find(caller, &IdCondition::Short(id))
    }

    /// How a principal's commands with a fingerprint ended in the last days, whatever their
    /// project; none where they are too few.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn statistics(
        &self,
        principal: &Principal,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Option<RunStatistics>, StoreError> {
        let command = CommandKey {
            principal: principal.clone(),
            fingerprint,
        };
        self.statistics_of_command(&command, now)
    }

    /// How the commands of these executions usually end, where enough is known.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn statistics_of(
        &self,
        ids: &[ExecutionId],
        now: Timestamp,
    ) -> Result<HashMap<ExecutionId, RunStatistics>, StoreError> {
        let mut by_command: HashMap<CommandKey, Option<RunStatistics>> = HashMap::new();
        let mut found = HashMap::new();
        for (id, command) in self.database.command_keys(ids)? {
            let statistics = match by_command.get(&command) {
                Some(known) => *known,
                None => {
                    let statistics = self.statistics_of_command(&command, now)?;
                    by_command.insert(command, statistics);
                    statistics
                }
            };
            found.extend(statistics.map(|statistics| (id, statistics)));
        }
        Ok(found)
    }

    fn statistics_of_command(
        &self,
        command: &CommandKey,
        now: Timestamp,
    ) -> Result<Option<RunStatistics>, StoreError> {
        let since = now.as_microsecond() - STATISTICS_DAYS * DAY_US;
        let since = Timestamp::from_microsecond(since).unwrap_or(Timestamp::MIN);
        let samples = self.database.samples(command, since)?;
        Ok(RunStatistics::of(&samples))
    }

    /// Forgets all rows, so that they are made anew.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn reset(&self) -> Result<(), StoreError> {
        self.database.reset()
    }

    /// Ends what waits for a server, now and from now on.
    pub fn close(&self) {
        self.database.close();
    }

    /// How far the ledger is folded.
    pub(crate) fn fold_position(&self) -> Result<FoldPosition, StoreError> {
        self.database.fold_position()
    }

    /// Folds these entries, which follow `from`; all or none of them.
    pub(crate) fn apply(
        &self,
        from: LedgerCursor,
        records: &[LedgerRecord],
    ) -> Result<(), StoreError> {
        let Some(last) = records.last() else {
            return Ok(());
        };
        let to = FoldPosition {
            next: LedgerCursor(last.seq + 1),
            hash: last.hash.clone(),
        };
        self.database.apply(from, &RowChanges::of(records), &to)
    }

    /// Removes some of the ended executions that were requested before `before`; returns whether
    /// there may be more to remove.
    pub(crate) fn expire(&self, before: Timestamp) -> Result<bool, StoreError> {
        self.database.expire(before)
    }
}
