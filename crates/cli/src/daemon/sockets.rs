//! The daemon's sockets in its runtime directory, made anew where they are removed: at logout,
//! by cleaners of temporary files, by hand. Told by inotify(7); nothing is looked at in between.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixListener;
use tokio::time::timeout;

use super::fronts::Fronts;
use super::lock::{self, Held};
use crate::error::CommandError;
use crate::paths::Places;
use crate::socket;

/// How long a runtime directory must be left alone before sockets are made in it again, in
/// milliseconds: whoever removes it may not be done.
const QUIET_MS: u64 = 100;

/// Both sockets, bound.
#[derive(Debug)]
pub(super) struct Sockets {
    front: UnixListener,
    http: UnixListener,
    /// Which files they are.
    files: [(u64, u64); 2],
}

impl Sockets {
    /// Binds both. The caller holds the lock of the runtime directory.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(super) fn bind(places: &Places) -> Result<Self, CommandError> {
        let listen = |path: &Path| {
            let bound = socket::bind(path).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok((UnixListener::from_std(listener)?, identity(path)?))
            });
            bound.map_err(|error| {
                CommandError::daemon(format!("cannot listen at {}: {error}", path.display()))
            })
        };
        let (front, front_file) = listen(&places.front_socket())?;
        let (http, http_file) = listen(&places.daemon_socket())?;
        Ok(Self {
            front,
            http,
            files: [front_file, http_file],
        })
    }

    /// Serves both until the daemon stops.
    fn serve(self, fronts: &Fronts) {
        let tracker = &fronts.tracker;
        tracker.spawn(fronts.clone().accept(self.front));
        tracker.spawn(super::http::serve(self.http, fronts.clone()));
    }
}

/// Serves the sockets, and makes them anew for as long as the daemon lives. Listeners whose
/// names are gone keep the connections they have.
pub(super) async fn keep(sockets: Sockets, held: Arc<Mutex<Held>>, places: Places, fronts: Fronts) {
    let stop = fronts.stop.clone();
    let kept = Kept {
        files: sockets.files,
        held,
        places,
    };
    sockets.serve(&fronts);
    let watching = kept.watch(&fronts);
    if let Some(Err(error)) = stop.run_until_cancelled(watching).await {
        tracing::warn!(%error, "the runtime directory is not watched");
    }
}

struct Kept {
    files: [(u64, u64); 2],
    /// The lock in the runtime directory as it is now.
    held: Arc<Mutex<Held>>,
    places: Places,
}

impl Kept {
    async fn watch(mut self, fronts: &Fronts) -> io::Result<()> {
        loop {
            let watch = Watch::of(&self.places.runtime, Watch::removal())?;
            // Looked at after the watch began, so that nothing falls between.
            if !self.are_gone() {
                watch.changed().await?;
                continue;
            }
            watch.quiet().await?;
            let watch = Watch::of(&self.places.runtime, Watch::change())?;
            if !self.are_gone() {
                continue;
            }
            match self.again().await {
                Ok(sockets) => {
                    tracing::info!(runtime = %self.places.runtime.display(), "listening again");
                    sockets.serve(fronts);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot listen again yet");
                    // Something there, or above it, must change first.
                    watch.changed().await?;
                }
            }
        }
    }

    /// Whether one of our sockets has no name any more. Another daemon's is none of our
    /// business.
    fn are_gone(&self) -> bool {
        let paths = [self.places.front_socket(), self.places.daemon_socket()];
        let gone = |path: &PathBuf| matches!(identity(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
        paths.iter().any(gone)
    }

    async fn again(&mut self) -> Result<Sockets, CommandError> {
        self.places.prepare_runtime()?;
        let path = self.places.lock();
        let is_ours = {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.is_at(&path)
        };
        if !is_ours {
            // One that starts meanwhile ends when it finds the state directory in use.
            let held = tokio::task::spawn_blocking(move || lock::hold(&path)).await;
            let mut held = held
                .map_err(io::Error::other)
                .and_then(|held| held)
                .map_err(|error| CommandError::daemon(format!("no lock: {error}")))?;
            held.note(&self.places.state);
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
        }
        let sockets = Sockets::bind(&self.places)?;
        self.files = sockets.files;
        Ok(sockets)
    }
}

/// Which file a path names.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// News of a directory, or of the nearest one above it that is there.
struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// That something in it, or itself, is removed or moved away.
    fn removal() -> WatchFlags {
        WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
    }

    /// That anything about it changes.
    fn change() -> WatchFlags {
        Self::removal() | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB
    }

    fn of(directory: &Path, news: WatchFlags) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut candidates = directory.ancestors();
        let found = candidates.find(|path| {
            // One above it tells when the next one below is made.
            let news = if *path == directory {
                news
            } else {
                Self::change()
            };
            inotify::add_watch(&watch, *path, news | WatchFlags::ONLYDIR).is_ok()
        });
        if found.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for above in directory.ancestors().skip(1) {
            let moves = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::MASK_ADD;
            // One that may not be read is not watched, and not moved by this user.
            let _unwatched = inotify::add_watch(&watch, above, moves).is_err();
        }
        let registered = ostler_process::register_descriptor(watch, Interest::READABLE)?;
        Ok(Self(registered))
    }

    /// Waits for news.
    async fn changed(&self) -> io::Result<()> {
        let mut guard = self.0.readable().await?;
        let mut buffer = [0; 4096];
        while rustix::io::read(self.0.get_ref(), &mut buffer).is_ok() {}
        guard.clear_ready();
        Ok(())
    }

    /// Waits until there was no news for a while.
    async fn quiet(&self) -> io::Result<()> {
        let quiet = Duration::from_millis(QUIET_MS);
        while let Ok(changed) = timeout(quiet, self.changed()).await {
            changed?;
        }
        Ok(())
    }
}
