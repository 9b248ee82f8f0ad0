//! What an earlier engine left: loaded, and where it had not finished, found again
//! (01 §3, the recovery table).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt;
use ostler_journal::{EVENTS_FILE, OutputWriter, read_events};
use ostler_model::{Event, EventRecord, ExecutionId, Owner, Spec, State};
use ostler_process::Found;
use ostler_process::spec_file::{self, SPEC_FILE, SpecFileError};

use crate::admission::quota::Share;
use crate::core::Core;
use crate::damaged::{self, Damaged};
use crate::driver::{Driver, Errand};
use crate::entry::{Entry, Live};
use crate::error::Error;
use crate::retention::{GONE_PREFIX, remove_directory};
use crate::service::dismissal::was_dismissed;
use crate::session::read_owner;

/// Executions looked for at the same time.
const AT_ONCE: usize = 16;
/// Executions that are so many that reading them leaves memory to give back.
const MANY: usize = 256;
/// What a garbled events file is moved to.
const DAMAGED_SUFFIX: &str = "damaged";

/// The exit record in an execution's directory.
const EXIT_FILE: &str = "exit";

/// One execution as it was left.
struct Left {
    id: ExecutionId,
    dir: PathBuf,
    spec: Spec,
    owner: Owner,
    records: Vec<EventRecord>,
    /// Whether the records had to be made up from the spec.
    rebuilt: bool,
}

/// Loads every execution of the state directory and takes up those that had not finished.
pub(crate) async fn recover(core: &Arc<Core>) -> Result<(), Error> {
    let dir = core.executions();
    let scan = tokio::task::spawn_blocking(move || scan(&dir)).await;
    let Scan {
        left,
        damaged,
        never_started,
    } = scan.unwrap_or_else(|error| {
        Err(Error::Storage {
            what: "cannot read",
            path: core.executions(),
            source: error.into(),
        })
    })?;
    let many = left.len() >= MANY;
    futures_util::stream::iter(left.into_iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |left| take_up(core, left))
        .await?;
    damaged::list(core, damaged).await;
    for id in never_started {
        // Should a spec have been emptied by somebody else, what runs of it is ended.
        let found = core.place.find(id).await;
        let dir = core.dir(id);
        let removed = tokio::task::spawn_blocking(move || remove_directory(&dir)).await;
        tracing::info!(%id, ?found, ?removed, "was never started: removed");
    }
    let loaded = Arc::clone(core);
    let summarize = move || {
        loaded.registry.loaded(|| !loaded.closing.is_cancelled());
        if many {
            // All that was read at once is not needed any more.
            ostler_process::trim_heap();
        }
    };
    if many {
        // Nobody waits for it.
        drop(core.tracker.spawn_blocking(summarize));
    } else {
        summarize();
    }
    Ok(())
}

/// What a directory of executions holds.
#[derive(Default)]
struct Scan {
    left: Vec<Left>,
    damaged: Vec<Damaged>,
    never_started: Vec<ExecutionId>,
}

fn scan(executions: &Path) -> Result<Scan, Error> {
    let failed = |source| Error::Storage {
        what: "cannot read",
        path: executions.to_owned(),
        source,
    };
    let mut scan = Scan::default();
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
        match load(id, &path) {
            Ok(found) => scan.left.push(found),
            Err(error) if is_damage(&error) => scan.damaged.push(Damaged {
                id,
                reason: error.to_string(),
                dir: path,
            }),
            // What we cannot read today another engine may: it stays as it is.
            Err(error) => tracing::warn!(%id, %error, "cannot be loaded: left alone"),
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

/// Whether no engine will ever be able to read it.
fn is_damage(error: &SpecFileError) -> bool {
    match error {
        SpecFileError::Damaged(_) => true,
        SpecFileError::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        SpecFileError::Version(_) => false,
    }
}

fn load(id: ExecutionId, dir: &Path) -> Result<Left, SpecFileError> {
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
    Ok(Left {
        id,
        dir: dir.to_owned(),
        owner: read_owner(dir).unwrap_or_else(|| file.spec.owner.clone()),
        spec: file.spec,
        records,
        rebuilt,
    })
}

async fn take_up(core: &Arc<Core>, left: Left) -> Result<(), Error> {
    let state = State::fold(&left.records);
    let share = Share::of(&left.spec, &left.owner);
    let whose = (left.id, Arc::new(left.spec), Arc::new(left.owner));
    if state.is_finished() {
        let end = left.records.last().map_or(0, |record| record.offset);
        let entry = Entry::ended(whose, left.dir, state, end);
        entry.turns.load_dropped(&left.records);
        if entry.spec.lifetime.plan().is_some() && was_dismissed(&entry.dir) {
            entry.dismiss();
        }
        core.registry.insert(Arc::clone(&entry), None);
        core.retire(&entry);
        return Ok(());
    }
    let inputs = left.records.iter().rev();
    let input_at = inputs
        .filter(|record| matches!(record.event, Event::Input { .. }))
        .map(|record| record.offset)
        .next();
    let live = Live {
        state,
        input_at,
        ..Live::default()
    };
    let (entry, asks) = Entry::taken_up(whose, left.dir, live);
    entry.turns.load(&left.records);
    core.registry.insert(Arc::clone(&entry), Some(share));
    let errand = Errand {
        entry,
        asks,
        draft: None,
        report_start: true,
        lossless_reader: false,
    };
    let found = core.place.find(left.id).await;
    if let Found::NotReached(error) = found {
        return Err(error.into());
    }
    let entry = Arc::clone(&errand.entry);
    let leased = is_leased(&left.records);
    let mut driver = Driver::resume(Arc::clone(core), errand, &left.records);
    if left.rebuilt {
        driver.rebuilt(left.records);
    }
    if leased {
        // Its holder is gone with the engine that knew them.
        entry.leases.left_behind();
        entry.leases_changed();
    }
    if driver.recover(found).await {
        core.tracker.spawn(driver.stay());
    }
    Ok(())
}

/// Whether a lease was held when the last event was recorded.
fn is_leased(records: &[EventRecord]) -> bool {
    let hands = |record: &&EventRecord| matches!(record.event, Event::LeaseTaken { .. });
    let last = records.iter().rev().find(hands);
    last.is_some_and(|it| matches!(it.event, Event::LeaseTaken { by: Some(_) }))
}
