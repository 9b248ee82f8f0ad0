//! [`HistoryDatabase`]: what the history needs of a database.

use std::fmt;

use ostler_journal::LedgerCursor;
use ostler_model::{Caller, ExecutionId, Principal, Timestamp};

use crate::changes::RowChanges;
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::query::{HistoryPage, HistoryQuery};
use crate::row::HistoryRow;
use crate::statistics::RunSample;

/// A database that holds the history of one ledger. Its methods block.
pub(crate) trait HistoryDatabase: fmt::Debug + Send + Sync {
    /// One page of rows, newest first.
    fn list(&self, query: &HistoryQuery) -> Result<HistoryPage, StoreError>;

    /// The newest row with this id, if the caller may see it.
    fn find(&self, caller: &Caller, id: &IdCondition<'_>)
    -> Result<Option<HistoryRow>, StoreError>;

    /// Which command each of these executions ran; those without a fingerprint are left out.
    fn command_keys(
        &self,
        ids: &[ExecutionId],
    ) -> Result<Vec<(ExecutionId, CommandKey)>, StoreError>;

    /// The newest ends of a command by itself, of those at `since` or later.
    fn samples(&self, command: &CommandKey, since: Timestamp)
    -> Result<Vec<RunSample>, StoreError>;

    /// How far the ledger is folded.
    fn fold_position(&self) -> Result<FoldPosition, StoreError>;

    /// Makes the changes of the entries between `from` and `to`, and stores `to`; all or nothing.
    /// `from` is the position that [`fold_position`](Self::fold_position) returned; where it is
    /// another one by now, the error is [`StoreError::Moved`].
    fn apply(
        &self,
        from: LedgerCursor,
        changes: &RowChanges,
        to: &FoldPosition,
    ) -> Result<(), StoreError>;

    /// Removes some of the ended executions that were requested before `before`; returns whether
    /// there may be more to remove.
    fn expire(&self, before: Timestamp) -> Result<bool, StoreError>;

    /// Forgets all rows and the position, so that they are made anew.
    fn reset(&self) -> Result<(), StoreError>;

    /// Ends what waits for the database, now and from now on.
    fn close(&self);
}

/// How far the ledger is folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoldPosition {
    /// The position of the next entry.
    pub(crate) next: LedgerCursor,
    /// The hash of the last entry; empty before the first.
    pub(crate) hash: String,
}

/// Which execution is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IdCondition<'a> {
    /// By its id.
    Whole(ExecutionId),
    /// By its short id.
    Short(&'a str),
}

/// One command of a principal, whatever its numbers and temporary paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandKey {
    pub(crate) principal: Principal,
    pub(crate) fingerprint: Fingerprint,
}
