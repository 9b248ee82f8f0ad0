//! Recovery: loads what an earlier engine left, and adopts, finishes or declares lost each
//! execution that had not finished.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use ostler_backend::RecoveryOutcome;
use ostler_backend::spec_file::{self, SPEC_FILE, SpecFileError};
use ostler_journal::{EVENTS_FILE, OutputWriter, read_events};
use ostler_model::{Event, EventRecord, ExecutionId, Owner, Principal, Spec, State};

use crate::admission::quota::QuotaKey;
use crate::damaged::{self, DamagedExecution};
use crate::dismissal_file::was_dismissed;
use crate::driver::{Driver, DriverInit};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{ExecutionHandle, ExecutionIdentity, LiveState};
use crate::lease::FormerLease;
use crate::missing_ends;
use crate::retention::{self, GONE_PREFIX, remove_directory};
use crate::session_end::read_owner;

/// Executions recovered concurrently.
const RECOVERY_CONCURRENCY: usize = 16;
/// The number of executions from which the heap is trimmed after loading.
const MANY_EXECUTIONS: usize = 256;
/// The suffix that a garbled events file is renamed to.
const DAMAGED_SUFFIX: &str = "damaged";

/// The exit record in an execution's directory.
const EXIT_FILE: &str = "exit";

/// One execution as stored on disk.
struct StoredExecution {
    id: ExecutionId,
    dir: PathBuf,
    spec: Spec,
    owner: Owner,
    records: Vec<EventRecord>,
    /// Whether its events had to be rebuilt from the spec.
    is_rebuilt: bool,
}

/// Loads every execution of the state directory and adopts those that had not finished; returns the
/// leases that were held in them.
pub(crate) async fn recover(core: &Arc<EngineInner>) -> Result<Vec<FormerLease>, Error> {
    let dir = core.executions_dir();
    let scan = tokio::task::spawn_blocking(move || scan_executions(&dir)).await;
    let ExecutionScan {
        stored,
        damaged,
        never_started,
        left_alone,
    } = scan.unwrap_or_else(|error| {
        Err(Error::Storage {
            what: "cannot read",
            path: core.executions_dir(),
            source: error.into(),
        })
    })?;
    let is_many = stored.len() >= MANY_EXECUTIONS;
    let leases: Vec<FormerLease> = futures_util::stream::iter(stored)
        .map(|left| reattach(core, left))
        .buffer_unordered(RECOVERY_CONCURRENCY)
        .try_filter_map(|lease| std::future::ready(Ok(lease)))
        .try_collect()
        .await?;
    damaged::list_as_lost(core, damaged).await;
    for id in never_started {
        // Should a spec have been emptied from outside, its processes are ended.
        let found = core.backend.recover(id).await;
        let dir = core.execution_dir(id);
        let removed = tokio::task::spawn_blocking(move || remove_directory(&dir)).await;
        tracing::info!(%id, ?found, ?removed, "was never started: removed");
    }
    missing_ends::write_missing_ends(core, |id| left_alone.contains(&id)).await;
    let inner = Arc::clone(core);
    let summarize = move || {
        inner.registry.on_loaded(|| !inner.closing.is_cancelled());
        if is_many {
            // All that was read at once is not needed any more.
            ostler_sys::resident_memory::trim_heap();
        }
    };
    if is_many {
        // Runs in the background.
        drop(core.tracker.spawn_blocking(summarize));
    } else {
        summarize();
    }
    Ok(leases)
}

/// The content of the directory of executions.
#[derive(Default)]
struct ExecutionScan {
    stored: Vec<StoredExecution>,
    damaged: Vec<DamagedExecution>,
    never_started: Vec<ExecutionId>,
    left_alone: Vec<ExecutionId>,
}

fn scan_executions(executions: &Path) -> Result<ExecutionScan, Error> {
    let failed = |source| Error::Storage {
        what: "cannot read",
        path: executions.to_owned(),
        source,
    };
    let mut scan = ExecutionScan::default();
    for entry in std::fs::read_dir(executions).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(GONE_PREFIX) {
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot be removed");
            }
            continue;
        }
        let Ok(id) = name.parse::<ExecutionId>() else {
            continue;
        };
        if never_started(&path) {
            scan.never_started.push(id);
            continue;
        }
        match load_stored(id, &path) {
            Ok(found) => scan.stored.push(found),
            Err(error) if is_permanent_damage(&error) => scan.damaged.push(DamagedExecution {
                id,
                reason: error.to_string(),
                dir: path,
            }),
            // What this version cannot read, another one may: it is left as it is.
            Err(error) => {
                tracing::warn!(%id, %error, "cannot be loaded: left alone");
                scan.left_alone.push(id);
            }
        }
    }
    Ok(scan)
}

/// Whether a start failed, or its shim was killed, before the spec was written: nothing ran.
fn never_started(dir: &Path) -> bool {
    let empty = |name: &str| match std::fs::metadata(dir.join(name)) {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    let [output, _] = OutputWriter::prepared_files();
    let files = [SPEC_FILE, EXIT_FILE, EVENTS_FILE, &output];
    dir.is_dir() && files.into_iter().all(empty)
}

/// Whether no version will ever be able to read it.
fn is_permanent_damage(error: &SpecFileError) -> bool {
    match error {
        SpecFileError::Damaged(_) | SpecFileError::NotAFile => true,
        SpecFileError::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        SpecFileError::Version(_) => false,
    }
}

fn load_stored(id: ExecutionId, dir: &Path) -> Result<StoredExecution, SpecFileError> {
    let file = spec_file::read(dir)?;
    let mut records = read_events(dir).unwrap_or_else(|error| {
        let events = dir.join("events.jsonl");
        let aside = dir.join(format!("events.jsonl.{DAMAGED_SUFFIX}"));
        let moved = std::fs::rename(&events, &aside);
        tracing::warn!(%id, %error, ?moved, "events cannot be read: rebuilt");
        Vec::new()
    });
    let rebuilt = records.is_empty();
    if rebuilt {
        records.push(EventRecord {
            seq: 0,
            at: id.minted_at().unwrap_or(file.created_at),
            offset: 0,
            event: Event::Created {
                missing: file.spec.policy.missing.clone(),
            },
        });
    }
    Ok(StoredExecution {
        id,
        dir: dir.to_owned(),
        owner: read_owner(dir).unwrap_or_else(|| file.spec.owner.clone()),
        spec: file.spec,
        records,
        is_rebuilt: rebuilt,
    })
}

async fn reattach(
    core: &Arc<EngineInner>,
    stored: StoredExecution,
) -> Result<Option<FormerLease>, Error> {
    let state = State::fold(&stored.records);
    let quota_key = QuotaKey::of(&stored.spec, &stored.owner);
    let identity = ExecutionIdentity {
        id: stored.id,
        spec: Arc::new(stored.spec),
        owner: Arc::new(stored.owner),
        dir: stored.dir,
    };
    if state.is_finished() {
        // The newest event may report a trim, whose offset is before the end.
        let offsets = stored.records.iter().map(|record| record.offset);
        let end = offsets.max().unwrap_or(0);
        let entry = ExecutionHandle::new_ended(identity, state, end);
        entry.timeline.load_dropped(&stored.records);
        if entry.spec.lifetime.plan().is_some() && was_dismissed(&entry.dir) {
            entry.dismiss();
        }
        core.registry.insert(Arc::clone(&entry), None);
        retention::retire(core, &entry);
        return Ok(None);
    }
    let inputs = stored.records.iter().rev();
    let input_at = inputs
        .filter(|record| matches!(record.event, Event::Input { .. }))
        .map(|record| record.offset)
        .next();
    let live = LiveState {
        state,
        last_input_offset: input_at,
        ..LiveState::default()
    };
    let (entry, commands) = ExecutionHandle::reattached(identity, live);
    entry.timeline.load(&stored.records);
    core.registry.insert(Arc::clone(&entry), Some(quota_key));
    let init = DriverInit {
        execution: entry,
        commands,
        template: None,
        report_start: true,
        lossless_reader: false,
    };
    let found = core.backend.recover(stored.id).await;
    if let RecoveryOutcome::Unreachable(error) = found {
        return Err(error.into());
    }
    let entry = &init.execution;
    let lease = lease_principal(&stored.records).map(|principal| FormerLease {
        entry: Arc::clone(entry),
        principal,
    });
    let mut driver = Driver::resume(Arc::clone(core), init, &stored.records);
    if stored.is_rebuilt {
        driver.push_rebuilt(stored.records);
    }
    if driver.on_recovered(found).await {
        core.tracker.spawn(driver.run_loop());
    }
    Ok(lease)
}

/// The principal who held the lease at the last recorded event.
fn lease_principal(records: &[EventRecord]) -> Option<Principal> {
    let change = records.iter().rev().find_map(|it| {
        if let Event::LeaseTaken { by } = &it.event {
            Some(by.clone())
        } else {
            None
        }
    });
    change.flatten()
}
