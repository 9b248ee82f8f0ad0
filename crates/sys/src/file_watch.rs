//! Watches one file of a directory for changes, with inotify(7).

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;

use futures_util::{FutureExt, StreamExt};
use inotify::{Event, EventMask, EventStream, Inotify, WatchMask};

/// Bytes of events that are read at once.
const EVENTS_BYTES: usize = 4 * 1024;

/// Watches one file through its directory, because writers replace the file.
pub struct FileWatch {
    events: EventStream<[u8; EVENTS_BYTES]>,
    name: OsString,
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWatch")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl FileWatch {
    /// Watches `file`, whether or not it exists. Needs a runtime with I/O.
    ///
    /// # Errors
    /// As inotify_init(2) and inotify_add_watch(2): the kernel's limits, a missing directory.
    pub fn new(file: &Path) -> io::Result<Self> {
        // Not at its creation: its content is incomplete then.
        Self::watch(file, WatchMask::empty())
    }

    /// As [`new`](Self::new), for a file that is complete when it is there, such as a socket: its
    /// creation is a change, too.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_creation(file: &Path) -> io::Result<Self> {
        Self::watch(file, WatchMask::CREATE)
    }

    fn watch(file: &Path, more: WatchMask) -> io::Result<Self> {
        let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let inotify = Inotify::init()?;
        let mask = more
            | WatchMask::CLOSE_WRITE
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        inotify.watches().add(dir, mask)?;
        Ok(Self {
            events: inotify.into_event_stream([0; EVENTS_BYTES])?,
            name: name.to_owned(),
        })
    }

    /// Resolves when the file was written, replaced or removed; everything that happened to it
    /// until then counts as one change.
    ///
    /// # Errors
    /// When its directory is gone, and no further events arrive.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            let first = self.events.next().await;
            let mut changed = self.affects_file(first)?;
            while let Some(more) = self.events.next().now_or_never() {
                changed |= self.affects_file(more)?;
            }
            if changed {
                return Ok(());
            }
        }
    }

    fn affects_file(&self, event: Option<io::Result<Event<OsString>>>) -> io::Result<bool> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "its directory is gone");
        let event = event.ok_or_else(gone)??;
        let ends = EventMask::IGNORED | EventMask::DELETE_SELF | EventMask::MOVE_SELF;
        if event.mask.intersects(ends) {
            return Err(gone());
        }
        // Dropped events may have been about this file.
        let lost = event.mask.contains(EventMask::Q_OVERFLOW);
        Ok(lost || event.name.as_ref() == Some(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_there_when_it_is_created() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let mut new = FileWatch::new(&path).expect("a watch");
        let mut with_creation = FileWatch::with_creation(&path).expect("a watch");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        with_creation.changed().await.expect("a change");
        assert!(new.changed().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_replaced_file_has_changed_and_its_neighbour_has_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        let mut watch = FileWatch::new(&path("watched")).expect("a watch");
        std::fs::write(path("other"), b"").expect("written");
        assert!(watch.changed().now_or_never().is_none());
        std::fs::rename(path("other"), path("watched")).expect("renamed");
        watch.changed().await.expect("a change");
        std::fs::remove_file(path("watched")).expect("removed");
        watch.changed().await.expect("a change");
        std::fs::remove_dir(dir.path()).expect("removed");
        assert!(watch.changed().await.is_err());
    }
}
