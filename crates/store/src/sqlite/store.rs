//! [`HistoryStore`]: the database file, its connections, and what they are used for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ostler_journal::{LedgerCursor, LedgerRecord};
use ostler_model::{Caller, ExecutionId, Principal, Timestamp};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::connection::{self, FileIdentity};
use super::list::{self, IdCondition};
use super::row_columns::{self, to_sql};
use super::schema;
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::fold::RowChange;
use crate::query::{HistoryPage, HistoryQuery};
use crate::row::{HistoryRow, RunTotals};
use crate::statistics::RunStatistics;

/// The most connections for reading that are kept.
const READERS_MAX: usize = 2;
/// The longest duration of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Steps of SQLite's virtual machine between two checks of that.
const STEPS_PER_CHECK: i32 = 10_000;
/// Rows deleted in one transaction.
const EXPIRED_ROWS: u64 = 1_000;

/// How far the ledger is folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoldPosition {
    /// The position of the next entry.
    pub(crate) next: LedgerCursor,
    /// The hash of the last entry; empty before the first.
    pub(crate) hash: String,
}

/// The history. Opens its file when it is used, and anew after it was replaced or deleted.
#[derive(Debug)]
pub struct HistoryStore {
    path: PathBuf,
    writer: Mutex<Option<OpenDatabase>>,
    readers: Mutex<Vec<OpenDatabase>>,
}

#[derive(Debug)]
struct OpenDatabase {
    connection: Connection,
    file: FileIdentity,
}

impl HistoryStore {
    /// The history in this file.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self {
            path,
            writer: Mutex::new(None),
            readers: Mutex::new(Vec::new()),
        }
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One page of rows that the caller of the query may see.
    ///
    /// # Errors
    /// When the database cannot be read, or the search takes too long.
    pub fn list(&self, query: &HistoryQuery) -> Result<HistoryPage, StoreError> {
        self.read(|connection| list::list(connection, query))
    }

    /// The row of one execution, if the caller may see it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find(&self, caller: &Caller, id: ExecutionId) -> Result<Option<HistoryRow>, StoreError> {
        let query = HistoryQuery::all_of(caller.clone());
        self.read(|connection| list::find(connection, &query, &IdCondition::Whole(id)))
    }

    /// The newest row with this short id, if the caller may see it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find_short(&self, caller: &Caller, id: &str) -> Result<Option<HistoryRow>, StoreError> {
        let query = HistoryQuery::all_of(caller.clone());
        self.read(|connection| list::find(connection, &query, &IdCondition::Short(id)))
    }

    /// How a principal's commands with a fingerprint ended in the last days; none where they are
    /// too few.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn statistics(
        &self,
        principal: &Principal,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Option<RunStatistics>, StoreError> {
        self.read(|connection| list::statistics(connection, &principal.0, fingerprint, now))
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
        self.read(|connection| {
            let mut found = HashMap::new();
            for id in ids {
                if let Some(statistics) = list::statistics_of(connection, *id, now)? {
                    found.insert(*id, statistics);
                }
            }
            Ok(found)
        })
    }

    /// Deletes the database, so that it is made anew.
    ///
    /// # Errors
    /// When its files cannot be removed.
    pub fn delete(&self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        *writer = None;
        self.readers.lock().clear();
        for path in self.files() {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// How far the ledger is folded.
    pub(crate) fn fold_position(&self) -> Result<FoldPosition, StoreError> {
        self.write(|connection| {
            let row = connection.query_row("SELECT position, hash FROM folded", (), |row| {
                Ok(FoldPosition {
                    next: LedgerCursor(row_columns::from_sql(row.get(0)?)),
                    hash: row.get(1)?,
                })
            });
            let row = row.optional()?;
            row.ok_or_else(|| StoreError::Damaged("the position in the ledger is missing".into()))
        })
    }

    /// Folds these entries, all or none of them.
    pub(crate) fn apply(&self, records: &[LedgerRecord]) -> Result<(), StoreError> {
        let Some(last) = records.last() else {
            return Ok(());
        };
        self.write(|connection| {
            let transaction = connection.transaction()?;
            for change in records.iter().filter_map(RowChange::of) {
                apply(&transaction, &change)?;
            }
            transaction.execute(
                "UPDATE folded SET position = ?1, hash = ?2",
                params![to_sql(last.seq + 1), last.hash],
            )?;
            Ok(transaction.commit()?)
        })
    }

    /// Removes ended executions that were requested before `before`; returns whether there may be
    /// more of them.
    pub(crate) fn expire(&self, before: Timestamp) -> Result<bool, StoreError> {
        const SQL: &str = "DELETE FROM execution WHERE position IN (SELECT position FROM execution \
             WHERE created_us < ?1 AND cause IS NOT NULL LIMIT ?2)";
        self.write(|connection| {
            let parameters = params![before.as_microsecond(), to_sql(EXPIRED_ROWS)];
            Ok(connection.execute(SQL, parameters)? as u64 == EXPIRED_ROWS)
        })
    }

    /// The database and the files that SQLite keeps beside it.
    fn files(&self) -> [PathBuf; 3] {
        let beside = |suffix: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        [self.path.clone(), beside("-wal"), beside("-shm")]
    }

    fn write<T>(
        &self,
        action: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer.lock();
        let is_current = writer
            .as_ref()
            .is_some_and(|open| FileIdentity::of(&self.path).is_ok_and(|file| file == open.file));
        if !is_current {
            *writer = None;
        }
        let open = match &mut *writer {
            Some(open) => open,
            None => writer.insert(self.open()?),
        };
        let result = action(&mut open.connection);
        if result.is_err() {
            *writer = None;
        }
        result
    }

    fn open(&self) -> Result<OpenDatabase, StoreError> {
        let mut connection = connection::open_writer(&self.path)?;
        schema::migrate(&mut connection, &self.path)?;
        let file = FileIdentity::of(&self.path)?;
        Ok(OpenDatabase { connection, file })
    }

    fn read<T>(
        &self,
        action: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let file = FileIdentity::of(&self.path)?;
        let kept = {
            let mut readers = self.readers.lock();
            readers.retain(|reader| reader.file == file);
            readers.pop()
        };
        let mut reader = match kept {
            Some(reader) => reader,
            None => OpenDatabase {
                connection: connection::open_reader(&self.path)?,
                file,
            },
        };
        let deadline = Instant::now() + SEARCH_TIMEOUT;
        let is_late = move || Instant::now() >= deadline;
        let connection = &mut reader.connection;
        connection.progress_handler(STEPS_PER_CHECK, Some(is_late))?;
        let result = action(connection);
        let mut readers = self.readers.lock();
        if result.is_ok() && readers.len() < READERS_MAX {
            readers.push(reader);
        }
        result
    }
}

fn apply(transaction: &Transaction<'_>, change: &RowChange) -> rusqlite::Result<()> {
    const ATTEMPT: &str = "UPDATE execution SET started_us = coalesce(started_us, ?2), \
         attempts = max(attempts, ?3) WHERE id = ?1";
    const END: &str = "UPDATE execution SET principal = ?2, project = ?3, session = ?4, \
         ended_us = ?5, cause = ?6, code = ?7, signal = ?8, user_us = ?9, system_us = ?10, \
         max_rss_bytes = ?11, output_bytes = ?12, prompts = ?13, output_lines = ?14, peaks = ?15 \
         WHERE id = ?1 AND cause IS NULL";
    match change {
        RowChange::Create(row) => {
            let mut statement = transaction.prepare_cached(row_columns::INSERT)?;
            row_columns::insert(&mut statement, row)?;
        }
        RowChange::Attempt {
            id,
            number,
            started,
        } => {
            let mut statement = transaction.prepare_cached(ATTEMPT)?;
            let started = started.map(Timestamp::as_microsecond);
            statement.execute(params![id.to_bytes(), started, number])?;
        }
        RowChange::End(end) => {
            let (owner, ending, totals) = (&end.owner, &end.ending, end.totals.as_ref());
            let total = |of: fn(&RunTotals) -> u64| totals.map(of).map(to_sql);
            let mut statement = transaction.prepare_cached(END)?;
            statement.execute(params![
                end.id.to_bytes(),
                owner.principal.0,
                owner.project,
                owner.session.as_ref().map(|name| &name.0),
                end.at.as_microsecond(),
                ending.cause.kind(),
                ending.code,
                ending.signal.map(ostler_model::Signal::number),
                total(|totals| totals.usage.user_us),
                total(|totals| totals.usage.system_us),
                total(|totals| totals.usage.max_rss_bytes),
                total(|totals| totals.output_bytes),
                total(|totals| totals.prompts),
                totals.and_then(|totals| totals.output_lines).map(to_sql),
                totals.and_then(|totals| serde_json::to_string(&totals.peaks).ok()),
            ])?;
        }
    }
    Ok(())
}
