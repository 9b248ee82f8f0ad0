//! Small JSON files that are written whole or not at all.

use std::io::{self, Read as _};
use std::path::Path;

use ostler_journal::atomic_file::{self, UMASK_MODE};
use ostler_sys::regular_file;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Reads a file.
///
/// # Errors
/// As read(2), and where something else is in its place, which is not waited for.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses a file of a later version than this.
///
/// # Errors
/// [`Error::NewerFile`].
pub(crate) fn refuse_newer(path: &Path, bytes: &[u8], newest: u8) -> Result<(), Error> {
    /// The version alone: the rest of a newer file may have another form.
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    match serde_json::from_slice(bytes) {
        Ok(Versioned { version }) if version > u64::from(newest) => Err(Error::NewerFile {
            path: path.to_owned(),
            version,
        }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Replaces a file atomically: readers find the old text or the new one. Not synced: a power
/// failure may leave either.
///
/// # Errors
/// [`Error::Storage`].
pub(crate) fn replace(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), Error> {
    let path = dir.join(name);
    let storage_error = |source: std::io::Error| Error::Storage {
        what: "cannot write",
        path: path.clone(),
        source,
    };
    let bytes = serde_json::to_vec(value).map_err(|error| storage_error(error.into()))?;
    atomic_file::replace(&path, &bytes, UMASK_MODE).map_err(storage_error)
}
