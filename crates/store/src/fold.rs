//! From entries of the ledger to changes of rows. Pure.

use std::collections::BTreeMap;

use ostler_journal::{LedgerEntry, LedgerRecord};
use ostler_model::{Event, ExecutionId, Owner, Termination, Timestamp, Usage, UsagePeaks};
use serde_json::Value;

use crate::fingerprint::Fingerprint;
use crate::row::{HistoryRow, RunTotals};

/// What one entry of the ledger changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowChange {
    /// An execution was requested.
    Create(Box<HistoryRow>),
    /// A process of it was started, or could not be.
    Attempt {
        id: ExecutionId,
        number: u32,
        /// When the process was started; none where it could not be.
        started: Option<Timestamp>,
    },
    /// It ended.
    End(Box<RunEnd>),
}

/// How and when an execution ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunEnd {
    pub(crate) id: ExecutionId,
    /// Its owner then: it may have been passed to its project.
    pub(crate) owner: Owner,
    pub(crate) at: Timestamp,
    pub(crate) ending: Termination,
    /// What it used; none where that is not known.
    pub(crate) totals: Option<RunTotals>,
}

impl RowChange {
    /// The execution whose row changes.
    pub(crate) fn id(&self) -> ExecutionId {
        match self {
            Self::Create(row) => row.id,
            Self::Attempt { id, .. } => *id,
            Self::End(end) => end.id,
        }
    }

    /// The change that an entry makes; none for entries that change no row.
    pub(crate) fn of(record: &LedgerRecord) -> Option<Self> {
        let LedgerRecord { seq, entry, .. } = record;
        let id = entry.execution?;
        match &entry.event {
            Event::Created { .. } => Some(Self::Create(Box::new(new_row(*seq, id, entry)))),
            Event::Started { attempt, .. } => Some(Self::Attempt {
                id,
                number: *attempt,
                started: Some(entry.at),
            }),
            Event::SpawnFailed { attempt, .. } => Some(Self::Attempt {
                id,
                number: *attempt,
                started: None,
            }),
            Event::Finished { ending } => Some(Self::End(Box::new(RunEnd {
                id,
                owner: entry.by.clone(),
                at: entry.at,
                ending: ending.clone(),
                totals: totals(&entry.detail),
            }))),
            Event::Refused { .. }
            | Event::Interaction { .. }
            | Event::Context { .. }
            | Event::Requested { .. }
            | Event::Alert { .. }
            | Event::Ports { .. }
            | Event::Stage { .. }
            | Event::Ready { .. }
            | Event::Health { .. }
            | Event::Detached { .. }
            | Event::PromptDetected { .. }
            | Event::PromptAnswered { .. }
            | Event::PromptGone {}
            | Event::Input { .. }
            | Event::Resized { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::LeaseTaken { .. }
            | Event::Sampled { .. }
            | Event::Workspace { .. }
            | Event::LimitHit { .. }
            | Event::Autorun { .. }
            | Event::Degraded { .. }
            | Event::Stopping { .. }
            | Event::Exited { .. }
            | Event::Restarting { .. }
            | Event::Backoff { .. }
            | Event::Adopted { .. }
            | Event::Trimmed { .. } => None,
        }
    }
}

type Detail = BTreeMap<String, Value>;

fn new_row(position: u64, id: ExecutionId, entry: &LedgerEntry) -> HistoryRow {
    let text = |name: &str| {
        let value = entry.detail.get(name).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let (command, directory) = (text("command"), text("cwd"));
    HistoryRow {
        position,
        id,
        owner: entry.by.clone(),
        client: text("face"),
        fingerprint: Fingerprint::of(&command, &directory),
        command,
        directory,
        labels: names(&entry.detail, "labels"),
        level: text("level"),
        in_force: names(&entry.detail, "in_force"),
        policy: text("policy"),
        created: entry.at,
        started: None,
        ended: None,
        cause: None,
        code: None,
        signal: None,
        attempts: 0,
        totals: None,
    }
}

fn names(detail: &Detail, key: &str) -> Vec<String> {
    let names = detail.get(key).and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Entries of versions before the totals, and of executions whose end was not seen, have none.
fn totals(detail: &Detail) -> Option<RunTotals> {
    let user_us = detail.get("user_us").and_then(Value::as_u64)?;
    let known = |name: &str| detail.get(name).and_then(Value::as_u64);
    let number = |name: &str| known(name).unwrap_or_default();
    Some(RunTotals {
        usage: Usage {
            user_us,
            system_us: number("system_us"),
            max_rss_bytes: number("max_rss_bytes"),
        },
        peaks: UsagePeaks {
            cpu_percent: detail.get("peak_cpu_percent").and_then(percent),
            memory_bytes: known("peak_memory_bytes"),
            disk_bytes: known("peak_disk_bytes"),
            read_bytes: known("read_bytes"),
            written_bytes: known("written_bytes"),
            received_bytes: known("received_bytes"),
            sent_bytes: known("sent_bytes"),
            processes: known("peak_processes").and_then(|count| u32::try_from(count).ok()),
        },
        output_bytes: number("output_bytes"),
        output_lines: known("output_lines"),
        prompts: number("prompts"),
    })
}

fn percent(value: &Value) -> Option<f32> {
    serde_json::from_value(value.clone()).ok()
}
