//! [`RowChanges`]: what a group of ledger entries changes, each row once. Pure.

use std::collections::HashMap;

use ostler_journal::LedgerRecord;
use ostler_model::{ExecutionId, Timestamp};

use crate::fold::{RowChange, RunEnd};
use crate::row::HistoryRow;

/// The changes of a group of entries. Most commands are short: they are created and end in one
/// group, and are one row to insert.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RowChanges {
    /// Changes of earlier rows whose id was created again: made before the rows are inserted.
    pub(crate) before: Vec<RowUpdate>,
    /// New rows, as they are after the group. A row that is there already stays, unless it is of
    /// an earlier run: its execution ended and was removed, or nothing was ever started under its
    /// id, as where the start is repeated after a kill of the engine. It is replaced then.
    pub(crate) created: Vec<HistoryRow>,
    /// Changes of earlier rows, at most one for each.
    pub(crate) updated: Vec<RowUpdate>,
}

/// The change of one earlier row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowUpdate {
    pub(crate) id: ExecutionId,
    /// When its first process was started, unless the row knows.
    pub(crate) started: Option<Timestamp>,
    /// The number of its last attempt, unless the row knows a later one; 0 without one.
    pub(crate) attempts: u32,
    /// Its end, unless the row has one.
    pub(crate) end: Option<RunEnd>,
}

/// Where the row of an execution is in [`RowChanges`].
#[derive(Debug, Clone, Copy)]
enum RowPlace {
    Created(usize),
    Updated(usize),
}

impl RowChanges {
    /// The changes of these entries, in their order.
    pub(crate) fn of(records: &[LedgerRecord]) -> Self {
        let mut changes = Self::default();
        let mut places: HashMap<ExecutionId, RowPlace> = HashMap::new();
        for change in records.iter().filter_map(RowChange::of) {
            changes.add(change, &mut places);
        }
        changes
    }

    fn create(&mut self, row: HistoryRow, places: &mut HashMap<ExecutionId, RowPlace>) {
        match places.get(&row.id) {
            Some(RowPlace::Created(index))
                if self.created[*index].attempts == 0 || self.created[*index].cause.is_some() =>
            {
                self.created[*index] = row;
            }
            Some(RowPlace::Updated(index))
                if self.updated[*index].attempts == 0 || self.updated[*index].end.is_some() =>
            {
                // Whether a process was ever started is known to the row alone.
                let none = RowUpdate::none(row.id);
                let before = std::mem::replace(&mut self.updated[*index], none);
                self.before.push(before);
                self.push_created(row, places);
            }
            Some(_) => {}
            None => self.push_created(row, places),
        }
    }

    fn push_created(&mut self, row: HistoryRow, places: &mut HashMap<ExecutionId, RowPlace>) {
        places.insert(row.id, RowPlace::Created(self.created.len()));
        self.created.push(row);
    }

    fn add(&mut self, change: RowChange, places: &mut HashMap<ExecutionId, RowPlace>) {
        let id = change.id();
        if let RowChange::Create(row) = change {
            self.create(*row, places);
            return;
        }
        let place = *places.entry(id).or_insert_with(|| {
            self.updated.push(RowUpdate::none(id));
            RowPlace::Updated(self.updated.len() - 1)
        });
        match place {
            RowPlace::Created(index) => self.created[index].change(change),
            RowPlace::Updated(index) => self.updated[index].change(change),
        }
    }
}

impl RowUpdate {
    const fn none(id: ExecutionId) -> Self {
        Self {
            id,
            started: None,
            attempts: 0,
            end: None,
        }
    }

    fn change(&mut self, change: RowChange) {
        match change {
            RowChange::Create(_) => {}
            RowChange::Attempt {
                number, started, ..
            } => {
                self.started = self.started.or(started);
                self.attempts = self.attempts.max(number);
            }
            RowChange::End(end) => {
                self.end.get_or_insert(*end);
            }
        }
    }
}

impl HistoryRow {
    fn change(&mut self, change: RowChange) {
        match change {
            RowChange::Create(_) => {}
            RowChange::Attempt {
                number, started, ..
            } => {
                self.started = self.started.or(started);
                self.attempts = self.attempts.max(number);
            }
            RowChange::End(end) if self.cause.is_none() => self.end(*end),
            RowChange::End(_) => {}
        }
    }

    fn end(&mut self, end: RunEnd) {
        self.owner.principal = end.owner.principal;
        self.owner.project = end.owner.project;
        self.owner.session = end.owner.session;
        self.ended = Some(end.at);
        self.cause = Some(end.ending.cause.kind().to_owned());
        self.code = end.ending.code;
        self.signal = end.ending.signal.map(ostler_model::Signal::number);
        self.totals = end.totals;
    }
}
