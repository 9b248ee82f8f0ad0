//! Reading journals while the process is short of file descriptors.

use std::time::Duration;

use ostler_journal::{ReadError, WriteError};
use ostler_sys::open_files;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a reader waits for a descriptor, in milliseconds, before it fails.
pub(crate) const READ_WAIT_MS: u64 = 10_000;
/// Files that a reader has open at once: the execution's directory, and two of a segment.
const READ_FILES: u64 = 3;

/// Serializes readers that found no descriptor: two that each open a part of what they need would
/// block each other.
static READ_LOCK: Mutex<()> = Mutex::const_new(());

/// Whether a read failed because this process may open no more files (`EMFILE`).
#[must_use]
pub fn is_out_of_fds(error: &ReadError) -> bool {
    match error {
        ReadError::Io { source, .. } => open_files::is_exhausted_io(source),
        ReadError::Missing { .. } | ReadError::Version { .. } | ReadError::Budget(_) => false,
    }
}

/// The same of a file that was to be written.
pub(crate) fn is_write_out_of_fds(error: &WriteError) -> bool {
    match error {
        WriteError::Io { source, .. } => open_files::is_exhausted_io(source),
        WriteError::Read(error) => is_out_of_fds(error),
        WriteError::Locked { .. } | WriteError::Format { .. } | WriteError::Encode(_) => false,
    }
}

/// Waits in turn until the files of a reader can be opened, for ten seconds at most.
pub async fn wait_for_free_fds() {
    let wait = async {
        let _guard = READ_LOCK.lock().await;
        open_files::wait_for(|| open_files::has_free(READ_FILES).then_some(())).await;
    };
    // A reader whose wait timed out gets the error of its own read.
    drop(timeout(Duration::from_millis(READ_WAIT_MS), wait).await);
}

/// Reads; where no descriptor is left, retries in turn, for ten seconds.
///
/// # Errors
/// As `read`.
pub async fn read_with_free_fds<T>(
    mut read: impl FnMut() -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    match read() {
        Err(error) if is_out_of_fds(&error) => {}
        done => return done,
    }
    let retry = async {
        let _guard = READ_LOCK.lock().await;
        open_files::wait_for(|| match read() {
            Err(error) if is_out_of_fds(&error) => None,
            done => Some(done),
        })
        .await
    };
    match timeout(Duration::from_millis(READ_WAIT_MS), retry).await {
        Ok(done) => done,
        Err(_) => read(),
    }
}
