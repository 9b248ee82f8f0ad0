//! Connections to the database file.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;

/// How long a statement waits for another process that holds the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Readable by the owner only: command lines reveal work.
const FILE_MODE: u32 = 0o600;
/// Pages of 4 KiB that a connection keeps in memory.
const CACHE_PAGES: i64 = 128;
/// Prepared statements kept by a connection.
const STATEMENTS: usize = 32;

/// Which file a path led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let meta = path.symlink_metadata()?;
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }
}

/// Opens the file for writing; creates it.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    create(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    // A power failure may cost the last transactions, which are folded again; it damages nothing.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // The statement journal of an insert, which the trigger needs, is some twenty pages: in a file
    // it takes thousands of writes a second, and fails where /var/tmp is full.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Creates the file with [`FILE_MODE`], which SQLite would not. A file that is there is not opened:
/// closing it would release the locks that other connections of this process hold on it (fcntl(2)).
fn create(path: &Path) -> Result<(), StoreError> {
    let new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path);
    match new {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Opens the file for reading.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", CACHE_PAGES)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    Ok(())
}
