//! Writes to the ledger the ends that an earlier engine did not: those of starts that its kill cut
//! off, and of executions whose directory is gone. Otherwise the history would show them as running
//! for ever.

use std::sync::Arc;

use ostler_journal::LedgerEntry;
use ostler_model::{
    Event, EventRecord, ExecutionId, LostReason, Termination, TerminationCause, Timestamp,
    UsagePeaks,
};

use crate::driver::run_totals;
use crate::engine_inner::{EngineInner, LedgerDetail};
use crate::execution::ExecutionHandle;

/// The step of a start that a kill of the engine cut off.
const STEP: &str = "spawn";
const KILLED_BEFORE: &str = "the engine was killed before the command was started: nothing ran";

/// Writes the missing ends of what an earlier engine left, once everything that runs is recovered.
/// Those that `is_unreadable` are left alone.
pub(crate) async fn write_missing_ends(
    core: &EngineInner,
    is_unreadable: impl Fn(ExecutionId) -> bool,
) {
    for (id, unfinished) in core.unfinished_executions() {
        if is_unreadable(id) {
            continue;
        }
        let (at, owner, ending, detail) = match core.registry.get(id) {
            Some(entry) => match recorded_end(&entry) {
                Some((at, ending, detail)) => (at, (*entry.owner()).clone(), ending, detail),
                None => continue,
            },
            None => {
                // It may run: who removed its directory did not end it.
                let found = core.backend.recover(id).await;
                tracing::debug!(%id, ?found, "there is no directory");
                let cause = cause_without_directory(unfinished.started);
                let ending = Termination::without_status(cause);
                let owner = unfinished.owner;
                (Timestamp::now(), owner, ending, LedgerDetail::new())
            }
        };
        tracing::warn!(%id, ?ending, "its end was not in the ledger");
        core.write_ledger(&LedgerEntry {
            at,
            execution: Some(id),
            by: owner,
            event: Event::Finished { ending },
            detail,
        });
    }
    core.checkpoint_unfinished();
}

/// The end that its directory has; none while it runs.
fn recorded_end(entry: &Arc<ExecutionHandle>) -> Option<(Timestamp, Termination, LedgerDetail)> {
    let (at, ending) = {
        let live = entry.live.borrow();
        let at = live.state.ended_at.unwrap_or_else(Timestamp::now);
        (at, live.state.ending.clone()?)
    };
    let record = EventRecord {
        seq: 0,
        at,
        offset: entry.journal_end.borrow().end,
        event: Event::Finished {
            ending: ending.clone(),
        },
    };
    let detail = run_totals::of(entry, &record, UsagePeaks::default());
    Some((at, ending, detail))
}

fn cause_without_directory(started: bool) -> TerminationCause {
    if started {
        let reason = LostReason::FilesDamaged;
        return TerminationCause::Lost { reason };
    }
    TerminationCause::SpawnFailed {
        step: STEP.to_owned(),
        errno: None,
        message: KILLED_BEFORE.to_owned(),
    }
}
