//! Small JSON files that are written whole or not at all.

use std::path::Path;

use ostler_journal::atomic_file::{self, UMASK_MODE};
use serde::Serialize;

use crate::error::Error;

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
