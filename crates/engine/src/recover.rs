//! What an earlier engine left: loaded, and where it had not finished, found again
//! (01 §3, the recovery table).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use ostler_journal::read_events;
use ostler_model::{Event, EventRecord, ExecutionId, Owner, Spec, State};
use ostler_process::spec_file;

use crate::admission::quota::Share;
use crate::core::Core;
use crate::driver::{Driver, Errand};
use crate::entry::{Entry, Live};
use crate::error::Error;
use crate::retention::GONE_PREFIX;
use crate::session::read_owner;

/// Executions looked for at the same time.
const AT_ONCE: usize = 16;
/// What a garbled events file is moved to.
const DAMAGED_SUFFIX: &str = "damaged";

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
    let (left, damaged) = scan.unwrap_or_else(|error| {
        Err(Error::Storage {
            what: "cannot read",
            path: core.executions(),
            source: error.into(),
        })
    })?;
    futures_util::stream::iter(left)
        .for_each_concurrent(AT_ONCE, |left| take_up(core, left))
        .await;
    for id in damaged {
        // Nobody can say whose it is; what still runs of it is ended, its files stay.
        let found = core.place.find(id).await;
        tracing::warn!(%id, ?found, "spec.json cannot be read: left alone");
    }
    Ok(())
}

fn scan(executions: &Path) -> Result<(Vec<Left>, Vec<ExecutionId>), Error> {
    let failed = |source| Error::Storage {
        what: "cannot read",
        path: executions.to_owned(),
        source,
    };
    let (mut left, mut damaged) = (Vec::new(), Vec::new());
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
        match load(id, &path) {
            Ok(found) => left.push(found),
            Err(error) => {
                tracing::warn!(%id, %error, "cannot be loaded");
                damaged.push(id);
            }
        }
    }
    Ok((left, damaged))
}

fn load(id: ExecutionId, dir: &Path) -> Result<Left, spec_file::SpecFileError> {
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

async fn take_up(core: &Arc<Core>, left: Left) {
    let state = State::fold(&left.records);
    let share = Share::of(&left.spec, &left.owner);
    let whose = (left.id, Arc::new(left.spec), Arc::new(left.owner));
    if state.is_finished() {
        let end = left.records.last().map_or(0, |record| record.offset);
        let entry = Entry::ended(whose, left.dir, state, end);
        entry.turns.load_dropped(&left.records);
        core.registry.insert(Arc::clone(&entry), None);
        core.retire(&entry);
        return;
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
    };
    let found = core.place.find(left.id).await;
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
}

/// Whether a lease was held when the last event was recorded.
fn is_leased(records: &[EventRecord]) -> bool {
    let hands = |record: &&EventRecord| matches!(record.event, Event::LeaseTaken { .. });
    let last = records.iter().rev().find(hands);
    last.is_some_and(|it| matches!(it.event, Event::LeaseTaken { by: Some(_) }))
}
