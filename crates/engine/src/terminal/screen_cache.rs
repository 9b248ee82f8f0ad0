//! The engine's cache of screens: parsed from the journals on demand, kept while they are viewed,
//! saved as checkpoints afterwards.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ostler_journal::{Journal, ReadError, retention};
use ostler_model::TermSize;
use ostler_model::spec::Io;
use ostler_terminal::Screen;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::cached_screen::{CachedScreen, ScreenOrigin};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;

/// The longest time of a parse, in milliseconds: output can be crafted to be slow. The rest is
/// skipped.
pub const SCREEN_CATCH_UP_MS: u64 = 15_000;
/// The most screens in memory, over all executions.
pub const SCREENS_LIVE: usize = 64;
/// The most output that a screen is parsed from at once, in bytes; older output is skipped, and the
/// screen says so.
pub const SCREEN_CATCH_UP_BYTES: u64 = 128 * 1024 * 1024;
/// The same before output of a running command is dropped, when nothing may be delayed for long.
pub const SCREEN_UPKEEP_BYTES: u64 = 16 * 1024 * 1024;
/// Output up to this many bytes is parsed in place; more on a separate thread.
const INLINE_BYTES: u64 = 256 * 1024;
/// Output that is parsed between two checks for cancellation.
const SLICE_BYTES: u64 = 1024 * 1024;
/// The amount of parsed output from which shutdown stores a checkpoint.
const CHECKPOINT_MIN_BYTES: u64 = 256 * 1024;

/// The screens in memory, the most recently used at the end.
#[derive(Debug, Default)]
pub(crate) struct ScreenCache(Mutex<VecDeque<Weak<ExecutionHandle>>>);

impl ScreenCache {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<ExecutionHandle>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a screen as used; returns those to evict.
    fn touch(&self, entry: &Arc<ExecutionHandle>) -> Vec<Arc<ExecutionHandle>> {
        let mut live = self.lock();
        live.retain(|it| it.strong_count() > 0 && it.as_ptr() != Arc::as_ptr(entry));
        live.push_back(Arc::downgrade(entry));
        let excess = live.len().saturating_sub(SCREENS_LIVE);
        live.drain(..excess).filter_map(|it| it.upgrade()).collect()
    }

    fn all(&self) -> Vec<Arc<ExecutionHandle>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// The target of a catch-up.
#[derive(Debug, Clone, Copy)]
struct CatchUpTarget {
    /// Parse at most this many bytes.
    max_bytes: u64,
    /// Up to this offset, or the journal's end.
    until: u64,
}

impl CatchUpTarget {
    const fn latest() -> Self {
        Self {
            max_bytes: SCREEN_CATCH_UP_BYTES,
            until: u64::MAX,
        }
    }

    const fn at_offset(until: u64) -> Self {
        Self {
            until,
            ..Self::latest()
        }
    }
}

/// A screen, locked for this caller.
type ScreenGuard = OwnedMutexGuard<Option<Box<CachedScreen>>>;

impl EngineInner {
    /// Runs `inspect` on the current screen. Concurrent callers for one screen share the parse.
    pub(crate) async fn with_screen<T>(
        &self,
        entry: &Arc<ExecutionHandle>,
        inspect: impl FnOnce(&Screen) -> T,
    ) -> Result<T, Error> {
        for old in self.screen_cache.touch(entry) {
            evict(&old);
        }
        let guard = Arc::clone(&entry.screen).lock_owned().await;
        let guard = self.catch_up(entry, guard, CatchUpTarget::latest()).await?;
        match guard.as_ref() {
            Some(cached) => Ok(inspect(&cached.screen)),
            None => Err(Error::Closing),
        }
    }

    /// Runs `inspect` on the screen as it was at `end`, and not later; none where that is no longer
    /// available. A cached screen beyond it is parsed again, in a separate copy.
    pub(crate) async fn with_screen_at<T>(
        &self,
        entry: &Arc<ExecutionHandle>,
        end: u64,
        inspect: impl FnOnce(&Screen) -> T,
    ) -> Result<Option<T>, Error> {
        for old in self.screen_cache.touch(entry) {
            evict(&old);
        }
        let mut guard = Arc::clone(&entry.screen).lock_owned().await;
        if guard.as_ref().is_some_and(|seat| seat.offset() > end) {
            guard = Arc::new(tokio::sync::Mutex::new(None)).lock_owned().await;
        }
        let guard = self
            .catch_up(entry, guard, CatchUpTarget::at_offset(end))
            .await?;
        let cached = guard.as_ref().filter(|seat| seat.offset() == end);
        Ok(cached.map(|seat| inspect(&seat.screen)))
    }

    /// Before output is dropped: catches the screen up and stores a checkpoint, parsing at most
    /// `max_bytes` bytes.
    pub(crate) async fn checkpoint_screen(&self, entry: &Arc<ExecutionHandle>, max_bytes: u64) {
        if terminal_size(entry).is_none() {
            return;
        }
        let guard = Arc::clone(&entry.screen).lock_owned().await;
        let was_live = guard.is_some();
        let target = CatchUpTarget {
            max_bytes,
            ..CatchUpTarget::latest()
        };
        match self.catch_up(entry, guard, target).await {
            Ok(mut guard) => {
                if let Some(cached) = guard.as_mut() {
                    cached.store();
                }
                if !was_live {
                    *guard = None;
                }
            }
            Err(error) => tracing::warn!(id = %entry.id, %error, "its screen is not kept"),
        }
    }

    /// As [`EngineInner::checkpoint_screen`], where retention is about to drop output.
    pub(crate) async fn checkpoint_before_trim(
        &self,
        entry: &Arc<ExecutionHandle>,
        max_bytes: u64,
    ) {
        if terminal_size(entry).is_none() {
            return;
        }
        let (dir, policy) = (entry.dir.clone(), self.settings.output);
        let excess = tokio::task::spawn_blocking(move || retention::excess(&dir, policy)).await;
        if matches!(excess, Ok(Ok(Some(_)))) {
            self.checkpoint_screen(entry, max_bytes).await;
        }
    }

    /// At shutdown, stores what took long to parse for the next engine.
    pub(crate) fn store_checkpoints(&self) {
        for entry in self.screen_cache.all() {
            if let Ok(mut guard) = entry.screen.try_lock()
                && let Some(cached) = guard.as_mut()
                && cached.unstored_bytes() >= CHECKPOINT_MIN_BYTES
            {
                cached.store();
            }
        }
    }

    async fn catch_up(
        &self,
        entry: &Arc<ExecutionHandle>,
        mut guard: ScreenGuard,
        target: CatchUpTarget,
    ) -> Result<ScreenGuard, Error> {
        if guard.is_none() {
            guard = open_screen(entry, guard).await?;
        }
        let Some(journal) = journal(entry)? else {
            return Ok(guard);
        };
        let end = journal.end()?.min(target.until);
        if let Some(cached) = guard.as_mut() {
            cached.sync_timeline(&entry.timeline);
            if end - cached.offset().min(end) > target.max_bytes {
                cached.skip_to(end - target.max_bytes);
            }
            if end - cached.offset().min(end) <= INLINE_BYTES {
                while cached.advance(&journal, end, INLINE_BYTES)? {}
                return Ok(guard);
            }
        }
        let deadline = Instant::now() + Duration::from_millis(SCREEN_CATCH_UP_MS);
        let mut more = true;
        while more {
            if self.closing.is_cancelled() {
                return Err(Error::Closing);
            }
            if let Some(cached) = guard.as_mut().filter(|_| Instant::now() > deadline) {
                cached.skip_to(end.saturating_sub(INLINE_BYTES));
            }
            (guard, more) = parse_slice(journal.clone(), guard, end).await?;
        }
        Ok(guard)
    }
}

/// The initial size of a terminal; none where there is no terminal.
pub(super) fn terminal_size(entry: &ExecutionHandle) -> Option<TermSize> {
    match entry.spec.io {
        Io::Pty { size } => Some(size),
        Io::Pipes { .. } => None,
    }
}

async fn open_screen(
    entry: &Arc<ExecutionHandle>,
    mut guard: ScreenGuard,
) -> Result<ScreenGuard, Error> {
    let size = terminal_size(entry).ok_or(Error::NoTerminal { id: entry.id })?;
    let entry = Arc::clone(entry);
    // The caller may go; the parse is not lost.
    let opened = tokio::task::spawn_blocking(move || {
        let shell = entry.spec.shell.as_ref();
        let origin = ScreenOrigin {
            dir: entry.dir.clone(),
            size,
            nonce: shell.map(|shell| shell.nonce.clone()),
        };
        *guard = Some(Box::new(CachedScreen::open(origin, &entry.timeline)?));
        Ok(guard)
    });
    opened.await.map_err(|_| Error::Closing)?
}

/// None while it is not spawned, or never was.
fn journal(entry: &ExecutionHandle) -> Result<Option<Journal>, Error> {
    match entry.journal() {
        Ok(journal) => Ok(Some(journal)),
        Err(Error::Output(ReadError::Missing { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses about [`SLICE_BYTES`] on a separate thread.
async fn parse_slice(
    journal: Journal,
    mut guard: ScreenGuard,
    end: u64,
) -> Result<(ScreenGuard, bool), Error> {
    let parsed = tokio::task::spawn_blocking(move || {
        let more = match guard.as_mut() {
            Some(cached) => cached.advance(&journal, end, SLICE_BYTES)?,
            None => false,
        };
        Ok((guard, more))
    });
    parsed.await.map_err(|_| Error::Closing)?
}

/// Drops the least recently used screen; its checkpoint stays. One that is in use right now is
/// added again.
fn evict(entry: &ExecutionHandle) {
    if let Ok(mut guard) = entry.screen.try_lock()
        && let Some(mut cached) = guard.take()
    {
        cached.store();
    }
}
