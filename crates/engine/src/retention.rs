//! Retention of ended executions: compression, expiry, removal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::query::TrimmedRange;
use ostler_journal::retention::{measure, trim};
use ostler_model::event::TrimReason;
use ostler_model::{Event, ExecutionId, Principal, RequestedAction, Timestamp};
use tokio::time::Instant;

use crate::engine_inner::{EngineInner, run_blocking};
use crate::execution::ExecutionHandle;
use crate::hooks::CheckpointEffort;
use crate::info::{CleanOutcome, ExecutionInfo};
use crate::overlay;
use crate::retention_scheduler::{DirectoryUsage, RETRY_AFTER, RemovalReason, UsageSource};

/// Bytes of output from which an ended execution's journal is compressed.
pub(crate) const COMPRESS_BYTES: u64 = 1024 * 1024;
/// Ended or removed executions after which the heap is trimmed.
const HEAP_STEP: u64 = 512;
/// Fewer removals than this free too little to trim the heap for.
const HEAP_FEW: u64 = 64;
/// How long no removal happens before the heap is trimmed: until then, callers hold the memory of
/// their responses.
const HEAP_QUIET: Duration = Duration::from_secs(2);
/// The name prefix of a directory during its removal.
pub(crate) const GONE_PREFIX: &str = ".gone-";

/// Schedules an execution that has ended and is fully written for compression and expiry.
pub(crate) fn retire(core: &Arc<EngineInner>, entry: &Arc<ExecutionHandle>) {
    let info = entry.info();
    core.retention.add(&info, disk_usage(core, entry, &info));
    core.registry.on_ended(entry.id);
    if core.retention.count_ended().is_multiple_of(HEAP_STEP) {
        trim_heap(core);
    }
    let printed = entry.journal_end.borrow().end;
    if printed >= COMPRESS_BYTES && !core.closing.is_cancelled() {
        let (inner, entry) = (Arc::clone(core), Arc::clone(entry));
        core.tracker
            .spawn(async move { compress(&inner, &entry).await });
    }
}

/// What the directory of an ended execution takes. A few system calls, and none for a short command.
fn disk_usage(core: &EngineInner, entry: &ExecutionHandle, info: &ExecutionInfo) -> DirectoryUsage {
    let estimate = DirectoryUsage::estimate(info.output_end, &info.state);
    let is_mirrored = core.settings.mirror.is_some();
    match UsageSource::of_execution(info.output_end, &info.state, is_mirrored) {
        UsageSource::Estimated => estimate,
        UsageSource::Measured => measured(entry).unwrap_or(estimate),
    }
}

fn measured(entry: &ExecutionHandle) -> Option<DirectoryUsage> {
    // The work files of an overlay may be many.
    match run_blocking(|| measure(&entry.dir)) {
        Ok((bytes, inodes)) => Some(DirectoryUsage { bytes, inodes }),
        Err(error) => {
            tracing::debug!(id = %entry.id, %error, "cannot be measured");
            None
        }
    }
}

/// Counts an ended execution anew, whose files were dropped or replaced. Its maintenance lock is
/// held.
pub(crate) fn measure_again(core: &EngineInner, entry: &ExecutionHandle) {
    if let Some(usage) = measured(entry) {
        core.retention.update(entry.id, usage);
    }
}

async fn compress(core: &EngineInner, entry: &Arc<ExecutionHandle>) {
    // The semaphore is never closed.
    let Ok(_one) = core.compression_permit.acquire().await else {
        return;
    };
    let _maintenance = entry.maintenance_lock.lock().await;
    let (dir, policy) = (entry.dir.clone(), core.settings.output);
    let durability = core.settings.durability;
    core.screens
        .checkpoint_before_trim(entry, CheckpointEffort::Full)
        .await;
    let trimmed = Arc::clone(entry);
    let work = move || -> Result<_, ostler_journal::WriteError> {
        let drop_guard = trimmed.begin_output_drop();
        let gone = trim(&dir, policy)?;
        // Before compression, which takes long: what a killed engine did not record looks lost.
        let noted = gone.map(|TrimmedRange { from, to }| {
            let reason = TrimReason::Retention;
            trimmed.record_event(Event::Trimmed { from, to, reason }, to, durability)
        });
        if let Some(Err(error)) = noted {
            tracing::warn!(id = %trimmed.id, %error, "a trim is not on record");
        }
        drop(drop_guard);
        Ok((gone, ostler_journal::retention::compress(&dir, durability)?))
    };
    let worked = tokio::task::spawn_blocking(work).await;
    measure_again(core, entry);
    match worked {
        Ok(Ok((gone, won))) => {
            tracing::debug!(id = %entry.id, ?gone, won, "trimmed and compressed");
        }
        Ok(Err(error)) => tracing::warn!(id = %entry.id, %error, "cannot be compressed"),
        Err(error) => tracing::error!(id = %entry.id, %error, "compression failed"),
    }
}

/// Removes expired executions, for as long as the engine lives. Sleeps until the next expiry.
pub(crate) async fn run(core: Arc<EngineInner>) {
    let mut trimmed_at = 0;
    loop {
        let (removals, wait) = core.retention.plan_removals(Timestamp::now());
        let mut has_failed = false;
        for (id, reason) in removals {
            let problem = match remove(&core, id, None).await {
                CleanOutcome::NotFound => continue,
                CleanOutcome::Cleaned | CleanOutcome::Discarded => {
                    report_removal(id, reason);
                    continue;
                }
                CleanOutcome::Running => "it runs".to_owned(),
                CleanOutcome::Failed(reason) => reason,
            };
            tracing::warn!(%id, problem, ?reason, "it was to be removed, and could not be removed");
            core.retention.retry_later(id, Timestamp::now());
            has_failed = true;
        }
        let retry = has_failed.then_some(RETRY_AFTER);
        let wait = wait.into_iter().chain(retry).min();
        let next_due = async {
            match wait {
                Some(wait) => tokio::time::sleep_until(Instant::now() + wait).await,
                None => std::future::pending().await,
            }
        };
        let removed = core.retention.removed();
        let quiet = async {
            if removed - trimmed_at < HEAP_FEW {
                std::future::pending::<()>().await;
            } else {
                tokio::time::sleep_until(Instant::now() + HEAP_QUIET).await;
            }
        };
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            () = core.retention.changed() => {}
            () = next_due => {}
            () = quiet => {
                trimmed_at = removed;
                trim_heap(&core);
            }
        }
    }
}

/// A removal that nobody expected is in the log: the end of a retention has no entry in the ledger.
fn report_removal(id: ExecutionId, reason: RemovalReason) {
    match reason {
        RemovalReason::Expired => tracing::debug!(%id, "removed: its retention is over"),
        RemovalReason::DirectoryFull => tracing::warn!(
            %id,
            reason = "the state directory is beyond its limit",
            "removed before its retention was over"
        ),
    }
}

/// Removes an ended execution with its files. The caller that takes it out of the registry
/// first removes it; the removal continues when the caller is gone. One that was requested `by`
/// somebody is recorded in the ledger.
pub(crate) async fn remove(
    core: &Arc<EngineInner>,
    id: ExecutionId,
    by: Option<Principal>,
) -> CleanOutcome {
    let Some(entry) = core.registry.remove_ended(id) else {
        return match core.registry.get(id) {
            Some(_) => CleanOutcome::Running,
            None => {
                core.retention.forget(id);
                CleanOutcome::NotFound
            }
        };
    };
    let inner = Arc::clone(core);
    let removal = core.tracker.spawn(async move {
        entry.wait_driver_done().await;
        let maintenance = entry.maintenance_lock.lock().await;
        let discarded = overlay::discard(&inner, &entry).await;
        let dir = entry.dir.clone();
        // The semaphore is never closed.
        let permit = inner.removal_permits.acquire().await;
        let removed = tokio::task::spawn_blocking(move || remove_directory(&dir)).await;
        drop((permit, maintenance));
        match removed {
            Ok(Ok(())) => {
                if let Some(by) = by {
                    inner.record_requested(&entry, RequestedAction::Remove, by);
                }
                inner.retention.remove(&entry);
                on_removed(&inner, entry.id);
                if discarded {
                    CleanOutcome::Discarded
                } else {
                    CleanOutcome::Cleaned
                }
            }
            Ok(Err(error)) => restore_entry(&inner, entry, error.to_string()),
            Err(error) => restore_entry(&inner, entry, error.to_string()),
        }
    });
    removal
        .await
        .unwrap_or_else(|error| CleanOutcome::Failed(error.to_string()))
}

/// Trims the heap at intervals; the retention loop does it again afterwards.
fn on_removed(core: &EngineInner, id: ExecutionId) {
    core.notify(|observer| observer.removed(id));
    // Removal has freed disk space.
    core.flush_unwritten();
    if core.retention.count_removed().is_multiple_of(HEAP_STEP) {
        trim_heap(core);
    }
}

fn trim_heap(core: &EngineInner) {
    drop(
        core.tracker
            .spawn_blocking(ostler_sys::resident_memory::trim_heap),
    );
}

fn restore_entry(core: &EngineInner, entry: Arc<ExecutionHandle>, reason: String) -> CleanOutcome {
    core.registry.insert(entry, None);
    CleanOutcome::Failed(reason)
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
