//! Retention of ended executions: compression, expiry, removal.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ostler_journal::retention::{ExecutionDiskUsage, StatePolicy, plan, state_policy, trim};
use ostler_model::event::TrimReason;
use ostler_model::{ExecutionId, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine_inner::EngineInner;
use crate::execution::ExecutionHandle;
use crate::info::CleanOutcome;
use crate::terminal::SCREEN_CATCH_UP_BYTES;

/// A client that waited for an end may query its result: for so many seconds after the end, a full
/// state directory does not remove this execution.
const RECENT_PROTECTED_S: u64 = 60;
/// Bytes of output from which an ended execution's journal is compressed.
pub(crate) const COMPRESS_BYTES: u64 = 1024 * 1024;
/// Bytes an execution takes besides its output, about: spec, events, exit record, index.
const OVERHEAD_BYTES: u64 = 16 * 1024;
/// Files and directories of an execution, about.
const INODES: u64 = 7;
/// Ended or removed executions after which the heap is trimmed.
const HEAP_STEP: u64 = 512;
/// Fewer removals than this free too little to trim the heap for.
const HEAP_FEW: u64 = 64;
/// How long no removal happens before the heap is trimmed: until then, callers hold the memory of
/// their responses.
const HEAP_QUIET: Duration = Duration::from_secs(2);
/// The name prefix of a directory during its removal.
pub(crate) const GONE_PREFIX: &str = ".gone-";

/// The expiry time of each ended execution, and their total size.
#[derive(Debug)]
pub(crate) struct RetentionScheduler {
    inner: Mutex<RetentionInner>,
    changed: Notify,
    policy: Option<StatePolicy>,
    /// Executions added so far.
    added: AtomicU64,
    /// Executions removed so far.
    removed: AtomicU64,
}

#[derive(Debug, Default)]
struct RetentionInner {
    due: BTreeSet<(Timestamp, ExecutionId)>,
    holdings: HashMap<ExecutionId, ExecutionDiskUsage>,
    bytes: u64,
    inodes: u64,
}

impl RetentionScheduler {
    pub(crate) fn new(state: &Path) -> Self {
        let policy = state_policy(state)
            .inspect_err(|error| tracing::warn!(%error, "the disk cannot be measured"))
            .ok();
        Self {
            inner: Mutex::default(),
            changed: Notify::new(),
            policy,
            added: AtomicU64::new(0),
            removed: AtomicU64::new(0),
        }
    }

    /// Adds an ended execution.
    fn add(&self, entry: &ExecutionHandle) {
        let info = entry.info();
        let Some(ended_at) = info.state.ended_at else {
            return;
        };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let retention = info.spec.retention;
        // A time beyond the range of timestamps means never.
        if let Some(due) = retention.and_then(|kept| ended_at.checked_add(kept).ok()) {
            inner.due.insert((due, entry.id));
            if inner.due.first() == Some(&(due, entry.id)) {
                self.changed.notify_one();
            }
        }
        let holding = ExecutionDiskUsage {
            id: entry.id,
            bytes: info.output_end + OVERHEAD_BYTES,
            inodes: INODES,
            ended_at: Some(ended_at),
        };
        inner.bytes += holding.bytes;
        inner.inodes += holding.inodes;
        inner.holdings.insert(entry.id, holding);
        if self.is_full(&inner) {
            self.changed.notify_one();
        }
    }

    fn is_full(&self, inner: &RetentionInner) -> bool {
        self.policy.is_some_and(|policy| {
            inner.bytes > policy.max_bytes || inner.inodes > policy.max_inodes
        })
    }

    /// Removes an execution that is gone.
    fn remove(&self, entry: &ExecutionHandle) {
        let info = entry.info();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holding) = inner.holdings.remove(&entry.id) {
            inner.bytes -= holding.bytes;
            inner.inodes -= holding.inodes;
        }
        let due = info.state.ended_at.zip(info.spec.retention);
        if let Some(due) = due.and_then(|(ended, kept)| ended.checked_add(kept).ok()) {
            inner.due.remove(&(due, entry.id));
        }
    }

    /// The executions to remove now, and when to check again.
    fn plan_removals(&self, now: Timestamp) -> (Vec<ExecutionId>, Option<Duration>) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut expired: Vec<ExecutionId> = inner
            .due
            .iter()
            .take_while(|(due, _)| *due <= now)
            .map(|(_, id)| *id)
            .collect();
        let next = inner.due.iter().find(|(due, _)| *due > now);
        let mut next = next.map(|(due, _)| *due);
        if let Some(policy) = self.policy.filter(|_| self.is_full(&inner)) {
            let mut holdings: Vec<ExecutionDiskUsage> = inner.holdings.values().cloned().collect();
            let protected_until = holdings
                .iter_mut()
                .filter_map(|it| protect_recent(it, now))
                .min();
            expired.extend(plan(&holdings, policy));
            next = next.into_iter().chain(protected_until).min();
        }
        let wait = next.and_then(|due| Duration::try_from(due.duration_since(now)).ok());
        (expired, wait)
    }
}

/// Excludes recently ended executions from a plan, as if they ran; returns until when.
fn protect_recent(holding: &mut ExecutionDiskUsage, now: Timestamp) -> Option<Timestamp> {
    let until = holding.ended_at? + Duration::from_secs(RECENT_PROTECTED_S);
    (until > now).then(|| {
        holding.ended_at = None;
        until
    })
}

impl EngineInner {
    /// Schedules an execution that has ended and is fully written for compression and expiry.
    pub(crate) fn retire(self: &Arc<Self>, entry: &Arc<ExecutionHandle>) {
        self.retention.add(entry);
        self.registry.on_ended(entry.id);
        let ended = self.retention.added.fetch_add(1, Ordering::Relaxed) + 1;
        if ended.is_multiple_of(HEAP_STEP) {
            self.trim_heap();
        }
        let printed = entry.journal_end.borrow().end;
        if printed >= COMPRESS_BYTES && !self.closing.is_cancelled() {
            let (core, entry) = (Arc::clone(self), Arc::clone(entry));
            self.tracker
                .spawn(async move { core.compress(&entry).await });
        }
    }

    async fn compress(&self, entry: &Arc<ExecutionHandle>) {
        // The semaphore is never closed.
        let Ok(_one) = self.compression_permit.acquire().await else {
            return;
        };
        let _maintenance = entry.maintenance_lock.lock().await;
        let (dir, policy) = (entry.dir.clone(), self.settings.output);
        self.checkpoint_before_trim(entry, SCREEN_CATCH_UP_BYTES)
            .await;
        let work = move || -> Result<_, ostler_journal::WriteError> {
            let gone = trim(&dir, policy)?;
            Ok((gone, ostler_journal::retention::compress(&dir)?))
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok((gone, won))) => {
                tracing::debug!(id = %entry.id, ?gone, won, "trimmed and compressed");
                let noted = gone
                    .map(|gone| entry.record_trimmed((gone.from, gone.to), TrimReason::Retention));
                if let Some(Err(error)) = noted {
                    tracing::warn!(id = %entry.id, %error, "a trim is not on record");
                }
            }
            Ok(Err(error)) => tracing::warn!(id = %entry.id, %error, "cannot be compressed"),
            Err(error) => tracing::error!(id = %entry.id, %error, "compression failed"),
        }
    }

    /// Removes expired executions, for as long as the engine lives. Sleeps until the next expiry.
    pub(crate) async fn run_retention(self: Arc<Self>) {
        let mut trimmed_at = 0;
        loop {
            let (expired, wait) = self.retention.plan_removals(Timestamp::now());
            let mut failed = false;
            for id in expired {
                failed |= match self.remove(id).await {
                    CleanOutcome::Cleaned | CleanOutcome::Discarded => false,
                    CleanOutcome::Running | CleanOutcome::NotFound | CleanOutcome::Failed(_) => {
                        true
                    }
                };
            }
            let next_due = async {
                match wait {
                    Some(wait) => tokio::time::sleep_until(Instant::now() + wait).await,
                    None => std::future::pending().await,
                }
            };
            if failed {
                tracing::warn!("an execution whose time is over could not be removed");
            }
            let removed = self.retention.removed.load(Ordering::Relaxed);
            let quiet = async {
                if removed - trimmed_at < HEAP_FEW {
                    std::future::pending::<()>().await;
                } else {
                    tokio::time::sleep_until(Instant::now() + HEAP_QUIET).await;
                }
            };
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                () = self.retention.changed.notified() => {}
                () = next_due => {}
                () = quiet => {
                    trimmed_at = removed;
                    self.trim_heap();
                }
            }
        }
    }

    /// Removes an ended execution with its files. The caller that takes it out of the registry
    /// first removes it; the removal continues when the caller is gone.
    pub(crate) async fn remove(self: &Arc<Self>, id: ExecutionId) -> CleanOutcome {
        let Some(entry) = self.registry.remove_ended(id) else {
            return match self.registry.get(id) {
                Some(_) => CleanOutcome::Running,
                None => {
                    self.retention.forget(id);
                    CleanOutcome::NotFound
                }
            };
        };
        let core = Arc::clone(self);
        let removal = self.tracker.spawn(async move {
            entry.wait_driver_done().await;
            let maintenance = entry.maintenance_lock.lock().await;
            let discarded = core.discard_overlay(&entry).await;
            let dir = entry.dir.clone();
            let removed = tokio::task::spawn_blocking(move || remove_directory(&dir)).await;
            drop(maintenance);
            match removed {
                Ok(Ok(())) => {
                    core.retention.remove(&entry);
                    core.on_removed();
                    if discarded {
                        CleanOutcome::Discarded
                    } else {
                        CleanOutcome::Cleaned
                    }
                }
                Ok(Err(error)) => core.restore_entry(entry, error.to_string()),
                Err(error) => core.restore_entry(entry, error.to_string()),
            }
        });
        removal
            .await
            .unwrap_or_else(|error| CleanOutcome::Failed(error.to_string()))
    }

    /// Trims the heap every so often; the retention loop does it once more afterwards.
    fn on_removed(&self) {
        // Removal has freed disk space.
        self.flush_unwritten();
        let before = self.retention.removed.fetch_add(1, Ordering::Relaxed);
        self.retention.changed.notify_one();
        if (before + 1).is_multiple_of(HEAP_STEP) {
            self.trim_heap();
        }
    }

    pub(crate) fn trim_heap(&self) {
        drop(self.tracker.spawn_blocking(ostler_backend_local::trim_heap));
    }

    fn restore_entry(&self, entry: Arc<ExecutionHandle>, reason: String) -> CleanOutcome {
        self.registry.insert(entry, None);
        CleanOutcome::Failed(reason)
    }
}

impl RetentionScheduler {
    /// Removes an id that is no longer in the registry.
    fn forget(&self, id: ExecutionId) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.due.retain(|(_, due)| *due != id);
    }
}

/// Removes a directory in two steps, so that half of one is never taken for an execution.
pub(crate) fn remove_directory(dir: &Path) -> std::io::Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let gone: PathBuf = dir.with_file_name(format!("{GONE_PREFIX}{name}"));
    match std::fs::rename(dir, &gone) {
        Ok(()) => std::fs::remove_dir_all(&gone),
        // Never created, or removed by hand: the requested result.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        // No room for a longer name. Without its spec, half of one is listed as damaged.
        Err(error) if is_full(&error) => std::fs::remove_dir_all(dir),
        Err(error) => Err(error),
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_just_ended_is_spared_for_a_while() {
        let ended = Timestamp::from_second(1_000).expect("a time");
        let holding = || ExecutionDiskUsage {
            id: ExecutionId::mint(),
            bytes: 1,
            inodes: 1,
            ended_at: Some(ended),
        };
        let until = ended + Duration::from_secs(RECENT_PROTECTED_S);
        let mut fresh = holding();
        assert_eq!(protect_recent(&mut fresh, ended), Some(until));
        assert_eq!(fresh.ended_at, None);
        let mut old = holding();
        assert_eq!(protect_recent(&mut old, until), None);
        assert_eq!(old.ended_at, Some(ended));
    }
}
