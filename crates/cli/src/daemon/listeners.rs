//! The daemon's sockets in its runtime directory, recreated when they are removed: at logout, by
//! cleaners of temporary files, by hand. Detected by inotify(7), without polling.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_sys::async_fd;
use ostler_sys::file_lock::FileLock;
use parking_lot::Mutex;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixListener;
use tokio::time::timeout;

use super::file_lock;
use super::stdio_server::StdioServer;
use crate::error::CommandError;
use crate::paths::Dirs;
use crate::unix_socket;

/// Milliseconds without a change in the runtime directory before sockets are recreated: a removal
/// may not be complete.
const SETTLE_MS: u64 = 100;

/// Both listening sockets.
#[derive(Debug)]
pub(super) struct DaemonListeners {
    stdio: UnixListener,
    http: UnixListener,
    /// The device and inode numbers of both.
    files: [(u64, u64); 2],
}

impl DaemonListeners {
    /// Binds both sockets. The caller holds the lock of the runtime directory.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(super) fn bind(dirs: &Dirs) -> Result<Self, CommandError> {
        let listen = |path: &Path| {
            let result = unix_socket::bind(path).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok((UnixListener::from_std(listener)?, identity(path)?))
            });
            result.map_err(|error| {
                CommandError::daemon(format!("cannot listen at {}: {error}", path.display()))
            })
        };
        let (stdio, stdio_file) = listen(&dirs.stdio_socket())?;
        let (http, http_file) = listen(&dirs.daemon_socket())?;
        Ok(Self {
            stdio,
            http,
            files: [stdio_file, http_file],
        })
    }

    /// Serves both until the daemon stops.
    fn serve(self, server: &StdioServer) {
        let tracker = &server.tracker;
        tracker.spawn(server.clone().accept(self.stdio));
        tracker.spawn(super::rest_server::serve(self.http, server.clone()));
    }
}

/// Serves the sockets, and recreates them while the daemon runs. Listeners whose files were removed
/// keep their connections.
pub(super) async fn serve_and_rebind(
    sockets: DaemonListeners,
    lock: Arc<Mutex<FileLock>>,
    dirs: Dirs,
    server: StdioServer,
) {
    let stop = server.stop.clone();
    let binder = ListenerBinder {
        files: sockets.files,
        lock,
        dirs,
    };
    sockets.serve(&server);
    let watch_task = binder.rebind_when_removed(&server);
    if let Some(Err(error)) = stop.run_until_cancelled(watch_task).await {
        tracing::warn!(%error, "the runtime directory is not watched");
    }
}

struct ListenerBinder {
    files: [(u64, u64); 2],
    /// The lock in the present runtime directory.
    lock: Arc<Mutex<FileLock>>,
    dirs: Dirs,
}

impl ListenerBinder {
    async fn rebind_when_removed(mut self, server: &StdioServer) -> io::Result<()> {
        loop {
            let watch = DirWatch::new(&self.dirs.runtime, DirWatch::removal_flags())?;
            // Checked after the watch began, so that no removal is missed.
            if !self.are_removed() {
                watch.changed().await?;
                continue;
            }
            watch.wait_quiet().await?;
            let watch = DirWatch::new(&self.dirs.runtime, DirWatch::change_flags())?;
            if !self.are_removed() {
                continue;
            }
            match self.rebind().await {
                Ok(sockets) => {
                    tracing::info!(runtime = %self.dirs.runtime.display(), "listening again");
                    sockets.serve(server);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot listen again yet");
                    // The directory, or one above it, must change first.
                    watch.changed().await?;
                }
            }
        }
    }

    /// Whether one of the sockets was removed. A socket of another daemon does not count.
    fn are_removed(&self) -> bool {
        let paths = [self.dirs.stdio_socket(), self.dirs.daemon_socket()];
        let is_removed = |path: &PathBuf| matches!(identity(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
        paths.iter().any(is_removed)
    }

    async fn rebind(&mut self) -> Result<DaemonListeners, CommandError> {
        self.dirs.prepare_runtime()?;
        let path = self.dirs.lock();
        let is_current = {
            let lock = self.lock.lock();
            lock.is_file_at(&path)
        };
        if !is_current {
            // A daemon that starts meanwhile exits when it finds the state directory locked.
            let lock = tokio::task::spawn_blocking(move || file_lock::lock(&path)).await;
            let lock = lock
                .map_err(io::Error::other)
                .and_then(|held| held)
                .map_err(|error| CommandError::daemon(format!("no lock: {error}")))?;
            file_lock::write_state_dir(&lock, &self.dirs.state);
            *self.lock.lock() = lock;
        }
        let sockets = DaemonListeners::bind(&self.dirs)?;
        self.files = sockets.files;
        Ok(sockets)
    }
}

/// The device and inode number of a path.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// An inotify watch of a directory, or of the nearest existing one above it.
struct DirWatch(AsyncFd<OwnedFd>);

impl DirWatch {
    /// Events of a removal or a move of an entry or of the directory itself.
    fn removal_flags() -> WatchFlags {
        WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
    }

    /// All events that change the directory.
    fn change_flags() -> WatchFlags {
        Self::removal_flags() | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB
    }

    fn new(directory: &Path, flags: WatchFlags) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut candidates = directory.ancestors();
        let watched = candidates.find(|path| {
            // A directory above reports the creation of the next one below it.
            let flags = if *path == directory {
                flags
            } else {
                Self::change_flags()
            };
            inotify::add_watch(&watch, *path, flags | WatchFlags::ONLYDIR).is_ok()
        });
        if watched.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for ancestor in directory.ancestors().skip(1) {
            let moves = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::MASK_ADD;
            // A directory that is not readable is not watched, and not moved by this user.
            let _unwatched = inotify::add_watch(&watch, ancestor, moves).is_err();
        }
        let registered = async_fd::register(watch, Interest::READABLE)?;
        Ok(Self(registered))
    }

    /// Waits for an event.
    async fn changed(&self) -> io::Result<()> {
        let mut guard = self.0.readable().await?;
        let mut buffer = [0; 4096];
        while rustix::io::read(self.0.get_ref(), &mut buffer).is_ok() {}
        guard.clear_ready();
        Ok(())
    }

    /// Waits until there was no event for [`SETTLE_MS`].
    async fn wait_quiet(&self) -> io::Result<()> {
        let quiet = Duration::from_millis(SETTLE_MS);
        while let Ok(changed) = timeout(quiet, self.changed()).await {
            changed?;
        }
        Ok(())
    }
}
