//! Copies of an execution's journal in another format (mirrors), kept up to date by its driver.

use ostler_export::{ExportError, ExportSubject, Format, Mirror};
use ostler_journal::{Journal, WriteError, read_events};

use crate::execution::ExecutionHandle;

/// Opens the copy of this format; there need not be one yet.
///
/// # Errors
/// As [`Mirror::open`].
pub(crate) fn open(entry: &ExecutionHandle, format: Format) -> Result<Mirror, ExportError> {
    Mirror::open(&entry.dir, Journal::open(&entry.dir)?, format)
}

/// Brings a copy level with the journal.
///
/// # Errors
/// As [`Mirror::advance`].
pub(crate) fn advance(mirror: &mut Mirror, entry: &ExecutionHandle) -> Result<(), ExportError> {
    let events = read_events(&entry.dir)?;
    let subject = ExportSubject {
        id: entry.id,
        spec: Some(&entry.spec),
        events: &events,
    };
    mirror.advance(&subject).map(drop)
}

/// Removes all copies, which hold output that was cleared; returns whether there were any.
///
/// # Errors
/// When one cannot be removed.
pub(crate) fn remove_copies(entry: &ExecutionHandle) -> Result<bool, WriteError> {
    Mirror::remove_all(&entry.dir).map_err(|source| WriteError::Io {
        action: "remove",
        file: "the mirror".to_owned(),
        source,
    })
}

/// Makes the copy of an ended execution anew, after its output was cleared: it has no driver.
///
/// # Errors
/// When a copy cannot be removed. One that cannot be made again is missing.
pub(crate) fn clear_ended(
    entry: &ExecutionHandle,
    format: Option<Format>,
) -> Result<(), WriteError> {
    let existed = remove_copies(entry)?;
    let Some(format) = format.filter(|_| existed) else {
        return Ok(());
    };
    let made = open(entry, format).and_then(|mut copy| advance(&mut copy, entry));
    if let Err(error) = made {
        tracing::warn!(id = %entry.id, %error, "there is no mirror any more");
    }
    Ok(())
}
