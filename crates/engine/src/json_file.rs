//! Small JSON files that are written whole or not at all.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use ostler_journal::atomic_file::{AtomicFile, UMASK_MODE};
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

/// Replaces a file atomically: readers find the old text or the new one, and of several writers at
/// once one comes last. Not synced: a power failure may leave either.
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
    let replace = || {
        let mut file = AtomicFile::create_unique(&path, UMASK_MODE)?;
        file.write_all(&bytes)?;
        file.commit()
    };
    replace().map_err(storage_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages may dismiss one service at once.
    #[test]
    fn writers_at_once_fail_no_other() {
        let dir = tempfile::tempdir().expect("a directory");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = dir.path();
                scope.spawn(move || {
                    for _ in 0..100 {
                        replace(path, "file.json", &vec![writer; 100]).expect("written");
                    }
                });
            }
        });
        let bytes = read(&dir.path().join("file.json")).expect("there");
        let stored: Vec<i32> = serde_json::from_slice(&bytes).expect("whole");
        assert_eq!(stored, vec![stored[0]; 100]);
        assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 1);
    }
}
