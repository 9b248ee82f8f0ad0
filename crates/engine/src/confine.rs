//! What is done to a running tree's walls from outside: pausing it, and deciding about writes
//! that were kept apart.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::LedgerEntry;
use ostler_model::{
    Ability, Caller, Event, Fate, Owner, Principal, Timestamp, WorkspaceAnswer, WorkspaceOrder,
};
use ostler_process::{ControlError, WorkspaceError};
use tokio::sync::oneshot;

use crate::core::{Core, Detail};
use crate::driver::{Ask, Freeze};
use crate::engine::Engine;
use crate::entry::Entry;
use crate::error::Error;
use crate::info::{Info, Notice};

/// How long a freeze may take until it is answered, in milliseconds: the order's way, and as
/// long as a place waits for every process to stand still.
const FREEZE_ANSWER_MS: u64 = 5_000;

/// The most changes one answer lists.
const CHANGES_MAX: usize = 100_000;
/// The longest diff of one answer, in bytes.
const DIFF_MAX_BYTES: usize = 8 * 1024 * 1024;

impl Engine {
    /// Freezes the whole tree; returns when it stands still. One that is paused already stays so.
    ///
    /// # Errors
    /// When the caller does not see it, it has ended, or it cannot be frozen.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Result<Info, Error> {
        self.freeze(caller, id, true).await
    }

    /// Lets a frozen tree go on.
    ///
    /// # Errors
    /// As for [`Engine::pause`].
    pub async fn resume(&self, caller: &Caller, id: &str) -> Result<Info, Error> {
        self.freeze(caller, id, false).await
    }

    async fn freeze(&self, caller: &Caller, id: &str, frozen: bool) -> Result<Info, Error> {
        let entry = self.core.registry.find(caller, id)?;
        let failed = |reason: &str| Error::Freeze {
            id: entry.id,
            verb: if frozen { "paused" } else { "resumed" },
            reason: reason.to_owned(),
        };
        let (answer, answered) = oneshot::channel();
        let freeze = Freeze {
            frozen,
            by: caller.owner.principal.clone(),
            answer,
        };
        // A driver that takes no more asks has just seen the end, or the engine's.
        if entry.ask(Ask::Freeze(freeze)).await.is_err() {
            return Err(failed("it has ended"));
        }
        let limit = Duration::from_millis(FREEZE_ANSWER_MS);
        match tokio::time::timeout(limit, answered).await {
            Ok(Ok(Ok(true))) => Ok(entry.fresh_info()),
            Ok(Ok(Ok(false))) => Err(failed("not all of its processes could be made to")),
            Ok(Ok(Err(ControlError::Ended))) => Err(failed("it is not running")),
            Ok(Ok(Err(error))) => Err(failed(&error.to_string())),
            Ok(Err(_)) => Err(failed("it has ended")),
            Err(_) => Err(failed("its shim does not answer")),
        }
    }

    /// Lists, shows, commits or discards what an execution wrote to its overlay.
    ///
    /// # Errors
    /// When the caller does not see it, it has no overlay, it still runs (commit, discard), or
    /// that was decided before.
    pub async fn workspace(
        &self,
        caller: &Caller,
        id: &str,
        order: WorkspaceOrder,
    ) -> Result<WorkspaceAnswer, Error> {
        let entry = self.core.registry.find(caller, id)?;
        if !has_overlay(&entry) {
            return Err(WorkspaceError::None(entry.id).into());
        }
        let decides = match &order {
            WorkspaceOrder::Commit { .. } | WorkspaceOrder::Discard => true,
            WorkspaceOrder::Changes { .. } | WorkspaceOrder::Diff { .. } => false,
        };
        if decides && !entry.is_finished() {
            return Err(WorkspaceError::Running(entry.id).into());
        }
        let by = caller.owner.principal.clone();
        let core = Arc::clone(&self.core);
        // What was begun is finished and recorded when the asker is gone, too.
        let work = self.core.tracker.spawn(async move {
            let _upkeep = match entry.is_finished() {
                true => {
                    entry.settled().await;
                    Some(entry.upkeep.lock().await)
                }
                false => None,
            };
            core.carry_out(&entry, by, bounded(order)).await
        });
        Ok(work.await.map_err(|_| Error::Closing)??)
    }
}

impl Core {
    /// Carries out an order, and records a decision.
    async fn carry_out(
        &self,
        entry: &Entry,
        by: Principal,
        order: WorkspaceOrder,
    ) -> Result<WorkspaceAnswer, WorkspaceError> {
        let answer = self.place.workspace(entry.id, order).await;
        if let Some(fate) = fate_of(&answer) {
            self.decided(entry, fate, by, Detail::new());
        }
        answer
    }

    /// Records what became of changes, once.
    fn decided(&self, entry: &Entry, fate: Fate, by: Principal, detail: Detail) {
        if entry.info().state.workspace.is_some() {
            return;
        }
        let offset = entry.marks.borrow().end;
        let event = Event::Workspace { fate, by };
        let owner = entry.owner();
        self.write_ledger(&LedgerEntry {
            at: Timestamp::now(),
            execution: Some(entry.id),
            by: Owner::clone(&owner),
            event: event.clone(),
            detail,
        });
        match entry.note(event, offset) {
            Ok(record) => {
                let notice = Notice {
                    id: entry.id,
                    owner,
                    record: Arc::new(record),
                };
                // Fails only where nobody listens.
                let _unheard = self.notices.send(notice).is_err();
            }
            Err(error) => tracing::error!(id = %entry.id, %error, "a decision is not on record"),
        }
    }

    /// How many changes of an ended execution wait for a decision: created, changed, deleted.
    /// None where none do.
    pub(crate) async fn open_changes(&self, entry: &Entry) -> Option<[u64; 3]> {
        if !has_overlay(entry) || entry.info().state.workspace.is_some() {
            return None;
        }
        let order = WorkspaceOrder::Changes { limit: 0 };
        match self.place.workspace(entry.id, order).await {
            Ok(WorkspaceAnswer::Changes(changes)) => {
                (changes.fate == Fate::Open && changes.totals != [0; 3]).then_some(changes.totals)
            }
            Ok(
                WorkspaceAnswer::Diff { .. }
                | WorkspaceAnswer::Committed(_)
                | WorkspaceAnswer::Autorun(_)
                | WorkspaceAnswer::Conflicts(_)
                | WorkspaceAnswer::Discarded,
            )
            | Err(_) => None,
        }
    }

    /// An execution is removed with its overlay: what waits for a decision is discarded, and
    /// the ledger says so. Answers whether something waited.
    pub(crate) async fn discard_with(&self, entry: &Entry) -> bool {
        if !has_overlay(entry) || entry.info().state.workspace.is_some() {
            return false;
        }
        let waited = self.open_changes(entry).await;
        if let Some([created, changed, deleted]) = waited {
            let mut detail = Detail::new();
            detail.insert("reason".to_owned(), "cleaned".into());
            detail.insert("created".to_owned(), created.into());
            detail.insert("changed".to_owned(), changed.into());
            detail.insert("deleted".to_owned(), deleted.into());
            let by = entry.owner().principal.clone();
            self.decided(entry, Fate::Discarded, by, detail);
        }
        // The layers may be deeper than a path is long; only the place takes them apart.
        match self
            .place
            .workspace(entry.id, WorkspaceOrder::Discard)
            .await
        {
            Ok(_) | Err(WorkspaceError::None(_) | WorkspaceError::Decided { .. }) => {}
            Err(error @ (WorkspaceError::Running(_) | WorkspaceError::Storage { .. })) => {
                tracing::warn!(id = %entry.id, %error, "an overlay cannot be discarded");
            }
        }
        waited.is_some()
    }
}

/// Whether what it wrote to its workspace was kept apart.
fn has_overlay(entry: &Entry) -> bool {
    let confinement = entry.spec.policy.confinement.as_ref();
    confinement.is_some_and(|it| it.overlay && !it.without.contains(&Ability::Overlay))
}

/// The same order within what one answer may hold.
fn bounded(order: WorkspaceOrder) -> WorkspaceOrder {
    match order {
        WorkspaceOrder::Changes { limit } => WorkspaceOrder::Changes {
            limit: limit.min(CHANGES_MAX),
        },
        WorkspaceOrder::Diff { paths, limit_bytes } => WorkspaceOrder::Diff {
            paths,
            limit_bytes: limit_bytes.min(DIFF_MAX_BYTES),
        },
        decision @ (WorkspaceOrder::Commit { .. } | WorkspaceOrder::Discard) => decision,
    }
}

/// What an answer says of the fate of changes, where it is decided.
fn fate_of(answer: &Result<WorkspaceAnswer, WorkspaceError>) -> Option<Fate> {
    match answer {
        Ok(WorkspaceAnswer::Changes(changes) | WorkspaceAnswer::Committed(changes)) => {
            (changes.fate != Fate::Open).then_some(changes.fate)
        }
        Ok(WorkspaceAnswer::Discarded)
        | Err(WorkspaceError::Decided {
            committed: false, ..
        }) => Some(Fate::Discarded),
        Err(WorkspaceError::Decided {
            committed: true, ..
        }) => Some(Fate::Committed),
        Ok(
            WorkspaceAnswer::Diff { .. }
            | WorkspaceAnswer::Autorun(_)
            | WorkspaceAnswer::Conflicts(_),
        )
        | Err(
            WorkspaceError::None(_) | WorkspaceError::Running(_) | WorkspaceError::Storage { .. },
        ) => None,
    }
}
