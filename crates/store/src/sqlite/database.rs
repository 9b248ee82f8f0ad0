//! [`SqliteDatabase`]: the database file, its connections, and what they are used for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ostler_journal::LedgerCursor;
use ostler_model::{Caller, ExecutionId, Timestamp};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::connection::{self, FileIdentity};
use super::list;
use super::row_columns;
use super::schema;
use crate::changes::{RowChanges, RowUpdate};
use crate::database::{CommandKey, FoldPosition, HistoryDatabase, IdCondition};
use crate::error::StoreError;
use crate::fold::RunEnd;
use crate::query::{HistoryPage, HistoryQuery};
use crate::row::{HistoryRow, RunTotals};
use crate::sql_values::{from_sql, to_sql};
use crate::statistics::RunSample;

/// The most connections for reading that are kept.
const READERS_MAX: usize = 2;
/// The longest duration of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Steps of SQLite's virtual machine between two checks of that.
const STEPS_PER_CHECK: i32 = 10_000;
/// Rows deleted in one transaction.
const EXPIRED_ROWS: u64 = 1_000;

/// How often a read that a reset fails is repeated.
const RESET_RETRIES: u32 = 8;

/// A file of SQLite. Opens it when it is used, and anew after it was replaced or deleted.
#[derive(Debug)]
pub(crate) struct SqliteDatabase {
    path: PathBuf,
    writer: Mutex<Option<OpenDatabase>>,
    readers: Mutex<Vec<OpenDatabase>>,
    /// How often the file was deleted; changed while the writer is locked. A file may have the
    /// inode of the one before it.
    resets: AtomicU64,
}

#[derive(Debug)]
struct OpenDatabase {
    connection: Connection,
    file: FileIdentity,
    /// [`SqliteDatabase::resets`] before it was opened.
    resets: u64,
}

impl HistoryDatabase for SqliteDatabase {
    fn list(&self, query: &HistoryQuery) -> Result<HistoryPage, StoreError> {
        self.read(|connection| list::list(connection, query))
    }

    fn find(
        &self,
        caller: &Caller,
        id: &IdCondition<'_>,
    ) -> Result<Option<HistoryRow>, StoreError> {
        self.read(|connection| list::find(connection, caller, id))
    }

    fn command_keys(
        &self,
        ids: &[ExecutionId],
    ) -> Result<Vec<(ExecutionId, CommandKey)>, StoreError> {
        self.read(|connection| list::command_keys(connection, ids))
    }

    fn samples(
        &self,
        command: &CommandKey,
        since: Timestamp,
    ) -> Result<Vec<RunSample>, StoreError> {
        self.read(|connection| list::samples(connection, command, since))
    }

    fn fold_position(&self) -> Result<FoldPosition, StoreError> {
        self.write(|connection| {
            let row = connection.query_row("SELECT position, hash FROM folded", (), |row| {
                Ok(FoldPosition {
                    next: LedgerCursor(from_sql(row.get(0)?)),
                    hash: row.get(1)?,
                })
            });
            let row = row.optional()?;
            row.ok_or_else(|| StoreError::Damaged("the position in the ledger is missing".into()))
        })
    }

    fn apply(
        &self,
        from: LedgerCursor,
        changes: &RowChanges,
        to: &FoldPosition,
    ) -> Result<(), StoreError> {
        self.write(|connection| {
            let transaction = connection.transaction()?;
            let advanced = transaction.execute(
                "UPDATE folded SET position = ?1, hash = ?2 WHERE position = ?3",
                params![to_sql(to.next.0), to.hash, to_sql(from.0)],
            )?;
            if advanced == 0 {
                return Err(StoreError::Moved);
            }
            for update in &changes.before {
                change(&transaction, update)?;
            }
            for row in &changes.created {
                row_columns::insert(&transaction, row)?;
            }
            for update in &changes.updated {
                change(&transaction, update)?;
            }
            Ok(transaction.commit()?)
        })
    }

    fn expire(&self, before: Timestamp) -> Result<bool, StoreError> {
        const SQL: &str = "DELETE FROM execution WHERE position IN (SELECT position FROM execution \
             WHERE created_us < ?1 AND cause IS NOT NULL LIMIT ?2)";
        self.write(|connection| {
            let parameters = params![before.as_microsecond(), to_sql(EXPIRED_ROWS)];
            Ok(connection.execute(SQL, parameters)? as u64 == EXPIRED_ROWS)
        })
    }

    /// Makes the tables anew; where that is not possible, deletes the file. A file is not deleted
    /// without need: searches that are under way have it open.
    fn reset(&self) -> Result<(), StoreError> {
        match self.write(schema::recreate) {
            Ok(()) => Ok(()),
            Err(_) => self.delete_files(),
        }
    }

    /// Each statement ends by itself after a few seconds.
    fn close(&self) {}
}

impl SqliteDatabase {
    /// The history in this file.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            writer: Mutex::new(None),
            readers: Mutex::new(Vec::new()),
            resets: AtomicU64::new(0),
        }
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

    fn delete_files(&self) -> Result<(), StoreError> {
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
        self.resets.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn resets(&self) -> u64 {
        self.resets.load(Ordering::Acquire)
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
        let resets = self.resets();
        let mut connection = connection::open_writer(&self.path)?;
        schema::migrate(&mut connection, &self.path)?;
        let file = FileIdentity::of(&self.path)?;
        Ok(OpenDatabase {
            connection,
            file,
            resets,
        })
    }

    /// The file is there before its tables are.
    fn open_reader(&self) -> Result<OpenDatabase, StoreError> {
        let resets = self.resets();
        // Without a reset, nothing was ever folded: a reader does not make the file.
        let is_reset = resets > 0 && !self.path.try_exists()?;
        let connection = if is_reset {
            None
        } else {
            let reader = connection::open_reader(&self.path)?;
            schema::has_tables(&reader)?.then_some(reader)
        };
        let connection = match connection {
            Some(connection) => connection,
            None => {
                // Waits for who makes them, or makes them.
                self.write(|_| Ok(()))?;
                connection::open_reader(&self.path)?
            }
        };
        let file = FileIdentity::of(&self.path)?;
        Ok(OpenDatabase {
            connection,
            file,
            resets,
        })
    }

    fn read<T>(
        &self,
        action: impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..RESET_RETRIES {
            let before = self.resets();
            let result = self.read_once(&action);
            if result.is_ok() {
                return result;
            }
            // Waits for a reset that is under way.
            drop(self.writer.lock());
            if self.resets() == before {
                return result;
            }
        }
        self.read_once(&action)
    }

    fn read_once<T>(
        &self,
        action: &impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (file, resets) = (FileIdentity::of(&self.path).ok(), self.resets());
        let kept = {
            let mut readers = self.readers.lock();
            readers.retain(|reader| Some(reader.file) == file && reader.resets == resets);
            readers.pop()
        };
        let mut reader = match kept {
            Some(reader) => reader,
            None => self.open_reader()?,
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

fn change(transaction: &Transaction<'_>, update: &RowUpdate) -> rusqlite::Result<()> {
    const ATTEMPT: &str = "UPDATE execution SET started_us = coalesce(started_us, ?2), \
         attempts = max(attempts, ?3) WHERE id = ?1";
    if update.attempts > 0 {
        let mut statement = transaction.prepare_cached(ATTEMPT)?;
        let started = update.started.map(Timestamp::as_microsecond);
        statement.execute(params![update.id.to_bytes(), started, update.attempts])?;
    }
    match &update.end {
        Some(end) => set_end(transaction, end),
        None => Ok(()),
    }
}

fn set_end(transaction: &Transaction<'_>, end: &RunEnd) -> rusqlite::Result<()> {
    const END: &str = "UPDATE execution SET principal = ?2, project = ?3, session = ?4, \
         ended_us = ?5, cause = ?6, code = ?7, signal = ?8, user_us = ?9, system_us = ?10, \
         max_rss_bytes = ?11, output_bytes = ?12, prompts = ?13, output_lines = ?14, peaks = ?15 \
         WHERE id = ?1 AND cause IS NULL";
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
        totals.and_then(row_columns::peaks_json),
    ])?;
    Ok(())
}
