//! Small files with what follows from the ledger, for the next engine.
//!
//! A file names the position of the ledger that it was written at. What the ledger has after that
//! is applied to it when it is read: a kill between an entry and the file loses nothing, and the
//! whole ledger is never read.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use ostler_journal::{LedgerCursor, LedgerEntry, LedgerReader};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::json_file;

const VERSION: u8 = 1;
/// The ledger entries that are read at once.
const LEDGER_PAGE: usize = 1_000;
/// Without a file, the last entries of the ledger that are read: an earlier version wrote none.
const LEDGER_TAIL: u64 = 10_000;

/// What follows from the entries of the ledger.
pub(crate) trait LedgerFold: Default + Serialize + DeserializeOwned {
    /// Applies the next entry. One that was applied before changes nothing.
    fn apply(&mut self, entry: LedgerEntry);
}

/// One such file.
#[derive(Debug)]
pub(crate) struct LedgerCheckpoint {
    path: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct CheckpointFile<T> {
    version: u8,
    /// How many entries the ledger had.
    ledger_end: u64,
    #[serde(flatten)]
    state: T,
}

impl LedgerCheckpoint {
    pub(crate) fn new(state_dir: &Path, name: &str) -> Self {
        Self {
            path: state_dir.join(name),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// As [`LedgerCheckpoint::try_write`], for a state that is in the ledger alone already: what cannot
    /// be written is not lost.
    pub(crate) fn write(&self, ledger_end: u64, state: impl Serialize) {
        if let Err(error) = self.try_write(ledger_end, state) {
            tracing::warn!(path = %self.path.display(), %error, "cannot be written");
        }
    }

    /// Replaces the file. Not synced: a power failure may leave an earlier one, whose position in the
    /// ledger is earlier, too.
    ///
    /// # Errors
    /// Where the file cannot be replaced, the earlier one is still there.
    pub(crate) fn try_write(&self, ledger_end: u64, state: impl Serialize) -> io::Result<()> {
        let file = CheckpointFile {
            version: VERSION,
            ledger_end,
            state,
        };
        let bytes = serde_json::to_vec(&file)?;
        let mut new = AtomicFile::create(&self.path, PRIVATE_MODE)?;
        new.write_all(&bytes)?;
        new.commit()
    }

    /// What the last engine left: the file, and what the ledger has since.
    pub(crate) fn read<T: LedgerFold>(&self, ledger: &LedgerReader, ledger_end: u64) -> T {
        let (mut state, position) = self.read_file().unwrap_or_default();
        let tail = ledger_end.saturating_sub(LEDGER_TAIL);
        // A position beyond the end is that of another ledger.
        let position = position.filter(|it| *it <= ledger_end).unwrap_or(tail);
        let mut next = LedgerCursor(position);
        loop {
            match ledger.read(next, LEDGER_PAGE) {
                Ok(page) if page.records.is_empty() => return state,
                Ok(page) => {
                    page.records
                        .into_iter()
                        .for_each(|it| state.apply(it.entry));
                    next = page.next;
                }
                Err(error) => {
                    tracing::warn!(path = %self.path.display(), %error, "the ledger cannot be read");
                    return state;
                }
            }
        }
    }

    fn read_file<T: LedgerFold>(&self) -> Option<(T, Option<u64>)> {
        let bytes = match json_file::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot be read: ignored");
                return None;
            }
        };
        match serde_json::from_slice::<CheckpointFile<T>>(&bytes) {
            Ok(file) if file.version <= VERSION => Some((file.state, Some(file.ledger_end))),
            Ok(file) => {
                tracing::warn!(path = %self.path.display(), version = file.version, "newer: ignored");
                None
            }
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot be read: ignored");
                None
            }
        }
    }
}
