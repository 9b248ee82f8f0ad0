//! The executions that the ledger has the creation of and not the end: those that run, and, after a
//! kill, those whose end is missing.

use std::collections::BTreeMap;
use std::path::Path;

use ostler_journal::{Ledger, LedgerEntry};
use ostler_model::{Event, ExecutionId, Owner};
use serde::{Deserialize, Serialize};

use crate::ledger_checkpoint::{LedgerCheckpoint, LedgerFold};

/// The file within the state directory.
const FILE: &str = "unfinished.json";
/// The entries after which the file is written again: more than these are never read at a start.
const CHECKPOINT_ENTRIES: u64 = 10_000;

/// What the ledger has of an execution without an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnfinishedExecution {
    pub(crate) owner: Owner,
    /// Whether a process of it was started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) started: bool,
}

/// The executions without an end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct UnfinishedExecutions {
    executions: BTreeMap<ExecutionId, UnfinishedExecution>,
}

impl UnfinishedExecutions {
    fn record(&mut self, entry: &LedgerEntry) {
        let Some(id) = entry.execution else {
            return;
        };
        if let Event::Created { .. } = entry.event {
            let unfinished = UnfinishedExecution {
                owner: entry.by.clone(),
                started: false,
            };
            self.executions.insert(id, unfinished);
        } else if let Event::Finished { .. } = entry.event {
            self.executions.remove(&id);
        } else if let Some(unfinished) = self.executions.get_mut(&id) {
            // It may have been passed to its project.
            unfinished.owner.clone_from(&entry.by);
            unfinished.started |= matches!(entry.event, Event::Started { .. });
        }
    }
}

impl LedgerFold for UnfinishedExecutions {
    fn apply(&mut self, entry: LedgerEntry) {
        self.record(&entry);
    }
}

/// Follows the ledger while it is written.
#[derive(Debug)]
pub(crate) struct UnfinishedTracker {
    executions: UnfinishedExecutions,
    checkpoint: LedgerCheckpoint,
    /// How many entries the ledger had at the last checkpoint.
    checkpoint_at: u64,
}

impl UnfinishedTracker {
    /// What the last engine left.
    pub(crate) fn open(state_dir: &Path, ledger: &Ledger) -> Self {
        let checkpoint = LedgerCheckpoint::new(state_dir, FILE);
        Self {
            executions: checkpoint.read(&ledger.reader(), ledger.end()),
            checkpoint,
            checkpoint_at: 0,
        }
    }

    /// An entry that is in the ledger, or will be before anything later.
    pub(crate) fn record(&mut self, entry: &LedgerEntry) {
        self.executions.record(entry);
    }

    /// The executions without an end.
    pub(crate) fn executions(&self) -> BTreeMap<ExecutionId, UnfinishedExecution> {
        self.executions.executions.clone()
    }

    /// Every entry recorded so far is in the ledger, which has `ledger_end` entries.
    pub(crate) fn on_written(&mut self, ledger_end: u64) {
        if ledger_end >= self.checkpoint_at + CHECKPOINT_ENTRIES {
            self.write(ledger_end);
        }
    }

    /// As [`UnfinishedTracker::on_written`], and writes the file.
    pub(crate) fn write(&mut self, ledger_end: u64) {
        self.checkpoint_at = ledger_end;
        self.checkpoint.write(ledger_end, &self.executions);
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::event::DegradedCapability;
    use ostler_model::{Principal, RequestChannel, Termination, TerminationCause, Timestamp};

    use super::*;

    fn owner(project: Option<&str>) -> Owner {
        Owner {
            principal: Principal::unix(7),
            project: project.map(str::to_owned),
            session: None,
            task: None,
            channel: RequestChannel::Local,
        }
    }

    fn entry(id: ExecutionId, by: Owner, event: Event) -> LedgerEntry {
        LedgerEntry {
            at: Timestamp::UNIX_EPOCH,
            execution: Some(id),
            by,
            event,
            detail: BTreeMap::new(),
        }
    }

    #[test]
    fn what_has_no_end_is_known_to_the_next_engine_with_or_without_the_file() {
        let scratch = tempfile::tempdir().expect("a directory");
        let dir = scratch.path();
        let mut ledger = Ledger::open(&dir.join("ledger")).expect("opened");
        let mut tracker = UnfinishedTracker::open(dir, &ledger);
        let [created, started, ended] = [(); 3].map(|()| ExecutionId::mint());
        let missing = Vec::new;
        let finished = Event::Finished {
            ending: Termination::without_status(TerminationCause::OutOfMemory),
        };
        let detail = String::new();
        let degraded = Event::Degraded {
            ability: DegradedCapability::Journal,
            detail,
        };
        let entries = [
            (created, owner(None), Event::Created { missing: missing() }),
            (started, owner(None), Event::Created { missing: missing() }),
            (ended, owner(None), Event::Created { missing: missing() }),
            (started, owner(None), Event::Started { attempt: 1, pid: 7 }),
            (ended, owner(None), finished),
            (ended, owner(None), degraded.clone()),
            (started, owner(Some("demo")), degraded),
        ];
        for (id, by, event) in entries {
            let entry = entry(id, by, event);
            ledger.append(&entry).expect("appended");
            tracker.record(&entry);
        }
        let expected = BTreeMap::from([
            (
                created,
                UnfinishedExecution {
                    owner: owner(None),
                    started: false,
                },
            ),
            (
                started,
                UnfinishedExecution {
                    owner: owner(Some("demo")),
                    started: true,
                },
            ),
        ]);
        assert_eq!(tracker.executions(), expected);
        let opened = UnfinishedTracker::open(dir, &ledger);
        assert_eq!(opened.executions(), expected, "from the ledger");
        tracker.on_written(CHECKPOINT_ENTRIES - 1);
        assert!(!dir.join(FILE).exists());
        tracker.write(ledger.end());
        let opened = UnfinishedTracker::open(dir, &ledger);
        assert_eq!(opened.executions(), expected, "from the file");
    }
}
