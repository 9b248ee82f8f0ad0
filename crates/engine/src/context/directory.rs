//! The directory of a context: created, checked before each use, and removed where Ostler created
//! it.

use std::io;

use ostler_sys::owned_dir::{self, DirPlace, DirRemoval};

use super::record::{ContextRecord, CreatedDir, DIRECTORY_GONE};
use crate::admission::working_dir;

/// Creates the directory of a context that names none.
///
/// # Errors
/// As [`owned_dir::create`].
pub(super) fn create(record: &ContextRecord) -> io::Result<Option<CreatedDir>> {
    if record.created.is_none() {
        return Ok(None);
    }
    let (parent, name) = record.place().ok_or(io::ErrorKind::InvalidInput)?;
    owned_dir::create(parent, name).map(|identity| Some(CreatedDir::new(identity)))
}

/// What keeps the context from being used; none where it is healthy.
pub(super) fn problem(record: &ContextRecord) -> Option<String> {
    let identity = record.created.and_then(CreatedDir::identity);
    if let (Some(identity), Some((parent, name))) = (identity, record.place()) {
        let problem = match owned_dir::inspect(parent, name, identity) {
            Ok(DirPlace::Same) => None,
            Ok(DirPlace::Absent) => Some(DIRECTORY_GONE.to_owned()),
            Ok(DirPlace::Replaced) => Some("its directory was replaced".to_owned()),
            Err(error) => Some(format!("its directory cannot be inspected: {error}")),
        };
        if problem.is_some() {
            return problem;
        }
    }
    let checked = working_dir::check(&record.directory);
    checked.err().map(|error| error.to_string())
}

/// Whether a directory that Ostler created is not there any more, while the one around it is.
pub(super) fn is_gone(record: &ContextRecord) -> bool {
    let identity = record.created.and_then(CreatedDir::identity);
    let (Some(identity), Some((parent, name))) = (identity, record.place()) else {
        return false;
    };
    let found = owned_dir::inspect(parent, name, identity);
    parent.is_dir() && matches!(found, Ok(DirPlace::Absent))
}

/// Removes the directory where Ostler created it; any other is left alone.
///
/// # Errors
/// What prevented it, for people.
pub(super) fn remove(record: &ContextRecord) -> Result<(), String> {
    let (Some(created), Some((parent, name))) = (record.created, record.place()) else {
        return Ok(());
    };
    let path = record.directory.as_path().display();
    let Some(identity) = created.identity() else {
        // Its creation was interrupted, and nothing ran in it.
        return match owned_dir::remove_empty(parent, name) {
            Ok(true) => Ok(()),
            Ok(false) => {
                tracing::warn!(context = %record.id, %path, "not there, or not empty: left alone");
                Ok(())
            }
            Err(error) => Err(format!("{path}: {error}")),
        };
    };
    match owned_dir::remove(parent, name, identity) {
        Ok(DirRemoval::Removed) => Ok(()),
        Ok(left @ (DirRemoval::Absent | DirRemoval::Replaced)) => {
            tracing::warn!(context = %record.id, %path, ?left, "nothing was removed");
            Ok(())
        }
        Ok(DirRemoval::Kept { count, names }) => Err(format!(
            "{path}: {count} entries are mounted, protected or belong to another user ({})",
            names.join(", ")
        )),
        Err(error) => Err(format!("{path}: {error}")),
    }
}
