//! The engine's cache of screens: parsed from the journals on demand, kept while they are viewed,
//! saved as checkpoints afterwards.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ostler_backend::TerminalQuery;
use ostler_journal::retention::OutputPolicy;
use ostler_journal::{Journal, ReadError, retention};
use ostler_model::spec::Io;
use ostler_model::{ExecutionId, TermSize};
use ostler_terminal::Screen;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cached_screen::{CachedScreen, ScreenOrigin};
use super::device_reports;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::hooks::{CheckpointEffort, ExecutionObserver, ScreenRetention, TerminalScreens};
use crate::lease::WriterLeases;
use crate::prompt::ScreenPrompt;

/// The longest time of a parse, in milliseconds: output can be crafted to be slow. The rest is
/// skipped.
pub const SCREEN_CATCH_UP_MS: u64 = 15_000;
/// The most screens in memory, over all executions.
pub const SCREENS_LIVE: usize = 64;
/// The most output that a screen is parsed from at once, in bytes; older output is skipped, and the
/// screen is marked accordingly.
pub const SCREEN_CATCH_UP_BYTES: u64 = 128 * 1024 * 1024;
/// The same before output of a running command is dropped, when nothing may be delayed for long.
pub const SCREEN_UPKEEP_BYTES: u64 = 16 * 1024 * 1024;
/// Output up to this many bytes is parsed in place; more on a separate thread.
const INLINE_BYTES: u64 = 256 * 1024;
/// Output that is parsed between two checks for cancellation.
const SLICE_BYTES: u64 = 1024 * 1024;
/// The amount of parsed output from which shutdown stores a checkpoint.
const CHECKPOINT_MIN_BYTES: u64 = 256 * 1024;

/// The screen of one execution, while it has viewers; boxed, because most are empty.
type ScreenSlot = Arc<tokio::sync::Mutex<Option<Box<CachedScreen>>>>;

/// A screen, locked for this caller.
type ScreenGuard = OwnedMutexGuard<Option<Box<CachedScreen>>>;

/// The screens in memory, by execution.
#[derive(Debug)]
pub(crate) struct ScreenCache {
    table: Mutex<ScreenTable>,
    /// How much output of an execution is kept.
    output: OutputPolicy,
    /// Who replies to terminal queries instead of the screens.
    leases: Arc<WriterLeases>,
    /// Cancelled when the engine shuts down.
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct ScreenTable {
    slots: HashMap<ExecutionId, ScreenSlot>,
    /// The executions whose screens stay, the most recently used at the end.
    recent: VecDeque<ExecutionId>,
}

impl ScreenTable {
    /// The slot of an execution, marked as used, and the screens to evict for it: the least recently
    /// used ones beyond [`SCREENS_LIVE`], except those in use right now. Their slots are settled
    /// afterwards.
    fn touch(&mut self, id: ExecutionId) -> (ScreenSlot, Vec<(ExecutionId, ScreenGuard)>) {
        self.recent.retain(|it| *it != id);
        self.recent.push_back(id);
        let slot = Arc::clone(self.slots.entry(id).or_default());
        let mut excess = self.recent.len().saturating_sub(SCREENS_LIVE);
        let mut evicted = Vec::new();
        let slots = &self.slots;
        self.recent.retain(|id| {
            if excess == 0 {
                return true;
            }
            excess -= 1;
            match slots.get(id).map(|slot| Arc::clone(slot).try_lock_owned()) {
                Some(Err(_)) => true,
                Some(Ok(guard)) => {
                    evicted.push((*id, guard));
                    false
                }
                None => false,
            }
        });
        (slot, evicted)
    }

    /// Removes the slot of an execution without viewers. A screen that is still parsed, or was left
    /// half way, stays until others are used.
    fn settle(&mut self, id: ExecutionId) {
        if self.recent.contains(&id) {
            return;
        }
        let is_empty = |slot: &ScreenSlot| slot.try_lock().is_ok_and(|it| it.is_none());
        match self.slots.get(&id) {
            Some(slot) if is_empty(slot) => drop(self.slots.remove(&id)),
            Some(_) => self.recent.push_front(id),
            None => {}
        }
    }

    fn remove(&mut self, id: ExecutionId) {
        self.slots.remove(&id);
        self.recent.retain(|it| *it != id);
    }
}

/// A slot of an execution that may have no viewers; settled when dropped.
#[derive(Debug)]
struct SlotUse<'a> {
    cache: &'a ScreenCache,
    id: ExecutionId,
}

impl Drop for SlotUse<'_> {
    fn drop(&mut self) {
        self.cache.table.lock().settle(self.id);
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

impl ScreenCache {
    pub(crate) fn new(
        output: OutputPolicy,
        leases: Arc<WriterLeases>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            table: Mutex::default(),
            output,
            leases,
            closing,
        }
    }

    pub(super) fn leases(&self) -> &WriterLeases {
        &self.leases
    }

    /// The slot of an execution with a viewer.
    fn touch(&self, id: ExecutionId) -> ScreenSlot {
        let (slot, evicted) = self.table.lock().touch(id);
        for (old, mut guard) in evicted {
            if let Some(mut cached) = guard.take() {
                cached.store();
            }
            drop(guard);
            self.table.lock().settle(old);
        }
        slot
    }

    /// Runs `inspect` on the current screen. Concurrent callers for one screen share the parse.
    pub(crate) async fn with_screen<T>(
        &self,
        entry: &Arc<ExecutionHandle>,
        inspect: impl FnOnce(&Screen) -> T,
    ) -> Result<T, Error> {
        let guard = self.touch(entry.id).lock_owned().await;
        let guard = self.catch_up(entry, guard, CatchUpTarget::latest()).await?;
        match guard.as_ref() {
            Some(cached) => Ok(inspect(&cached.screen)),
            None => Err(Error::Closing),
        }
    }

    /// As [`ScreenCache::with_screen`] for a caller that is no viewer: no other screen is evicted for
    /// this one, and where it was not in memory, only the last [`SCREEN_UPKEEP_BYTES`] are parsed.
    async fn with_screen_unviewed<T>(
        &self,
        entry: &Arc<ExecutionHandle>,
        inspect: impl FnOnce(&Screen) -> T,
    ) -> Result<T, Error> {
        let (slot, has_room) = {
            let mut table = self.table.lock();
            let has_room = table.recent.len() < SCREENS_LIVE;
            (
                Arc::clone(table.slots.entry(entry.id).or_default()),
                has_room,
            )
        };
        // Dropped after the guards below.
        let _slot_use = SlotUse {
            cache: self,
            id: entry.id,
        };
        let guard = slot.lock_owned().await;
        let was_live = guard.is_some();
        let mut target = CatchUpTarget::latest();
        if !was_live {
            target.max_bytes = SCREEN_UPKEEP_BYTES;
        }
        let mut guard = self.catch_up(entry, guard, target).await?;
        let inspected = guard.as_ref().map(|cached| inspect(&cached.screen));
        let is_whole = guard.as_ref().is_some_and(|it| it.screen.is_exact());
        let stays = was_live || (has_room && is_whole);
        if !stays {
            *guard = None;
        }
        inspected.ok_or(Error::Closing)
    }

    /// Runs `inspect` on the screen as it was at `end`, and not later; none where that is no longer
    /// available. A cached screen beyond it is parsed again, in a separate copy.
    pub(crate) async fn with_screen_at<T>(
        &self,
        entry: &Arc<ExecutionHandle>,
        end: u64,
        inspect: impl FnOnce(&Screen) -> T,
    ) -> Result<Option<T>, Error> {
        let mut guard = self.touch(entry.id).lock_owned().await;
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
        let slot = Arc::clone(self.table.lock().slots.entry(entry.id).or_default());
        // Dropped after the guards below.
        let _slot_use = SlotUse {
            cache: self,
            id: entry.id,
        };
        let guard = slot.lock_owned().await;
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

    /// As [`ScreenCache::checkpoint_screen`], where retention is about to drop output.
    async fn checkpoint_excess(&self, entry: &Arc<ExecutionHandle>, max_bytes: u64) {
        if terminal_size(entry).is_none() {
            return;
        }
        let (dir, policy) = (entry.dir.clone(), self.output);
        let excess = tokio::task::spawn_blocking(move || retention::excess(&dir, policy)).await;
        if matches!(excess, Ok(Ok(Some(_)))) {
            self.checkpoint_screen(entry, max_bytes).await;
        }
    }

    /// At shutdown, stores what took long to parse for the next engine.
    pub(crate) fn store_checkpoints(&self) {
        let slots: Vec<ScreenSlot> = self.table.lock().slots.values().map(Arc::clone).collect();
        for slot in slots {
            if let Ok(mut guard) = slot.try_lock()
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

impl ExecutionObserver for ScreenCache {
    fn removed(&self, id: ExecutionId) {
        self.table.lock().remove(id);
    }
}

impl TerminalScreens for ScreenCache {
    fn checkpoint_before_trim<'a>(
        &'a self,
        entry: &'a Arc<ExecutionHandle>,
        effort: CheckpointEffort,
    ) -> BoxFuture<'a, ()> {
        let max_bytes = match effort {
            CheckpointEffort::Full => SCREEN_CATCH_UP_BYTES,
            CheckpointEffort::Brief => SCREEN_UPKEEP_BYTES,
        };
        Box::pin(self.checkpoint_excess(entry, max_bytes))
    }

    fn reply_to_query(
        self: Arc<Self>,
        entry: Arc<ExecutionHandle>,
        query: TerminalQuery,
        end: u64,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move { device_reports::send_report(&self, &entry, query, end).await })
    }

    fn prompt_screen<'a>(
        &'a self,
        entry: &'a Arc<ExecutionHandle>,
        retention: ScreenRetention,
    ) -> BoxFuture<'a, Option<ScreenPrompt>> {
        Box::pin(async move {
            let read =
                |screen: &Screen| ScreenPrompt::from_view(&screen.snapshot(), screen.shell());
            let shown = match retention {
                ScreenRetention::Keep => self.with_screen(entry, read).await,
                ScreenRetention::KeepWithinLimit => self.with_screen_unviewed(entry, read).await,
            };
            match shown {
                Ok(shown) => Some(shown),
                Err(error) => {
                    tracing::debug!(id = %entry.id, %error, "a prompt is looked for without its screen");
                    None
                }
            }
        })
    }
}

/// The initial size of a terminal; none where there is no terminal.
pub(crate) fn terminal_size(entry: &ExecutionHandle) -> Option<TermSize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> ScreenCache {
        let (leases, closing) = (Arc::default(), CancellationToken::new());
        ScreenCache::new(OutputPolicy::default(), leases, closing)
    }

    #[test]
    fn slots_are_bounded_and_the_least_recently_used_are_evicted() {
        let cache = cache();
        let ids: Vec<ExecutionId> = (0..SCREENS_LIVE + 2).map(|_| ExecutionId::mint()).collect();
        let in_use = cache.touch(ids[0]);
        let guard = in_use.try_lock().expect("nobody else uses it");
        for id in &ids[1..] {
            drop(cache.touch(*id));
        }
        let has = |id: ExecutionId| cache.table.lock().slots.contains_key(&id);
        assert!(has(ids[0]), "it is in use");
        assert!(!has(ids[1]));
        assert!(has(ids[SCREENS_LIVE + 1]));
        drop(guard);
        drop(cache.touch(ids[2]));
        assert!(!has(ids[0]));
        assert!(has(ids[2]));
        let table = cache.table.lock();
        assert_eq!(table.slots.len(), table.recent.len());
    }

    #[test]
    fn nothing_is_kept_of_a_removed_execution_and_of_one_without_viewers() {
        let cache = cache();
        let (viewed, other) = (ExecutionId::mint(), ExecutionId::mint());
        drop(cache.touch(viewed));
        cache.table.lock().slots.entry(other).or_default();
        cache.table.lock().settle(other);
        cache.table.lock().settle(viewed);
        let kept: Vec<ExecutionId> = cache.table.lock().slots.keys().copied().collect();
        assert_eq!(kept, [viewed]);
        cache.removed(viewed);
        let table = cache.table.lock();
        assert!(table.slots.is_empty() && table.recent.is_empty());
    }
}
