//! The file of raised alerts, so that the next engine raises none of them again.

use std::collections::BTreeMap;

use ostler_journal::LedgerEntry;
use ostler_model::{AlertKind, AlertState, Event, ExecutionId};
use serde::{Deserialize, Serialize};

use crate::ledger_checkpoint::LedgerFold;

/// The file within the state directory.
pub(super) const FILE: &str = "alerts.json";

/// The alerts that were raised and not resolved, of executions that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RaisedAlerts {
    raised: BTreeMap<ExecutionId, Vec<AlertKind>>,
}

impl RaisedAlerts {
    /// The kinds of an execution.
    pub(super) fn of(&self, execution: ExecutionId) -> &[AlertKind] {
        self.raised.get(&execution).map_or(&[], Vec::as_slice)
    }

    /// An alert was raised or resolved.
    pub(super) fn set(&mut self, execution: ExecutionId, kind: AlertKind, state: AlertState) {
        let kinds = self.raised.entry(execution).or_default();
        kinds.retain(|it| *it != kind);
        match state {
            AlertState::Raised => kinds.push(kind),
            AlertState::Resolved => {}
        }
        if kinds.is_empty() {
            self.forget(execution);
        }
    }

    /// The execution has ended.
    pub(super) fn forget(&mut self, execution: ExecutionId) {
        self.raised.remove(&execution);
    }
}

impl LedgerFold for RaisedAlerts {
    fn apply(&mut self, entry: LedgerEntry) {
        let Some(execution) = entry.execution else {
            return;
        };
        if let Event::Alert { alert, state, .. } = entry.event {
            self.set(execution, alert, state);
        } else if let Event::Finished { .. } = entry.event {
            self.forget(execution);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_version_1() {
        let id: ExecutionId = "0198c0de-0000-7000-8000-000000000000"
            .parse()
            .expect("an id");
        let text = r#"{"raised":{"0198c0de-0000-7000-8000-000000000000":["memory","run_time"]}}"#;
        let mut read: RaisedAlerts = serde_json::from_str(text).expect("readable");
        assert_eq!(read.of(id), [AlertKind::Memory, AlertKind::RunTime]);
        assert_eq!(serde_json::to_string(&read).expect("writable"), text);
        read.set(id, AlertKind::Memory, AlertState::Resolved);
        read.set(id, AlertKind::RunTime, AlertState::Raised);
        assert_eq!(read.of(id), [AlertKind::RunTime]);
        read.set(id, AlertKind::RunTime, AlertState::Resolved);
        assert_eq!(read, RaisedAlerts::default());
    }
}
