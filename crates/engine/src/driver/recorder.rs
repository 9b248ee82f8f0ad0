//! Writes events, off the latency path of responses.
//!
//! Events that can be rebuilt from `spec.json` and the exit record are deferred until the caller
//! has its response, and are written at once; a one-shot writes its events once, after its end.
//! Every other event is written before it takes effect.

use std::path::PathBuf;

use ostler_journal::{EventWriter, LedgerEntry, WriteError};
use ostler_model::{Event, EventRecord};
use ostler_sys::open_files;

use crate::engine_inner::{EngineInner, LedgerDetail};
use crate::execution::ExecutionHandle;
use crate::fd_shortage::is_write_out_of_fds;

use super::run_totals;

/// The pending events of one execution, and the file they go to.
#[derive(Debug)]
pub(crate) struct EventRecorder {
    dir: PathBuf,
    writer: Option<EventWriter>,
    pending: Vec<EventRecord>,
    failed: bool,
}

impl EventRecorder {
    pub(super) const fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            writer: None,
            pending: Vec::new(),
            failed: false,
        }
    }

    pub(super) fn push(&mut self, records: Vec<EventRecord>) {
        self.pending.extend(records);
    }

    /// Whether more than the request itself is pending. The request alone stays deferred: it is in
    /// the ledger and in `spec.json`, and its directory is still being made by the shim.
    pub(super) fn needs_flush(&self) -> bool {
        self.pending
            .iter()
            .any(|record| !matches!(record.event, Event::Created { .. }))
    }

    /// Writes everything pending: first the ledger, then the execution's events, so that an end may
    /// be recorded twice but is never missing.
    pub(super) fn flush(&mut self, core: &EngineInner, entry: &ExecutionHandle) {
        if self.pending.is_empty() {
            return;
        }
        let (id, owner) = (entry.id, entry.owner());
        let pending = std::mem::take(&mut self.pending);
        for record in pending.iter().filter(|record| is_lifecycle(&record.event)) {
            let is_end = matches!(record.event, Event::Finished { .. });
            let detail = if is_end {
                let peaks = core.usage_monitor.finish(id);
                run_totals::of(entry, record, peaks)
            } else {
                LedgerDetail::new()
            };
            core.write_ledger(&LedgerEntry {
                at: record.at,
                execution: Some(id),
                by: (*owner).clone(),
                event: record.event.clone(),
                detail,
            });
        }
        if self.writer.is_none() && !self.dir.is_dir() {
            // Never spawned: there is no directory for events.
            return;
        }
        let written = core.with_disk_wait(|| {
            let append = || self.append(core, entry, &pending);
            open_files::with_emergency_fds(append, is_write_out_of_fds)
        });
        match written {
            Ok(()) => core.flush_unwritten(),
            // The command must not fail for our disk: they are written with the next ones.
            Err(error) => {
                entry.unwritten.lock().push(&pending);
                if !std::mem::replace(&mut self.failed, true) {
                    tracing::error!(%id, %error, "events cannot be written now");
                }
            }
        }
    }

    fn append(
        &mut self,
        core: &EngineInner,
        entry: &ExecutionHandle,
        records: &[EventRecord],
    ) -> Result<(), WriteError> {
        let mut unwritten = entry.unwritten.lock();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let (writer, _known) = EventWriter::open(&self.dir)?;
                let durability = core.settings.durability;
                self.writer.insert(writer.with_durability(durability))
            }
        };
        unwritten.append(writer, records)
    }

    /// Closes the file.
    pub(super) fn close(&mut self) {
        self.writer = None;
    }
}

/// What the ledger holds besides the request itself, which is written before the start.
const fn is_lifecycle(event: &Event) -> bool {
    match event {
        Event::SpawnFailed { .. }
        | Event::Started { .. }
        | Event::Ready { .. }
        | Event::Health { .. }
        | Event::Detached { .. }
        | Event::Restarting { .. }
        | Event::LeaseTaken { .. }
        | Event::LimitHit { .. }
        | Event::Autorun { .. }
        | Event::Workspace { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::Degraded { .. }
        | Event::Stopping { .. }
        | Event::Backoff { .. }
        | Event::Adopted { .. }
        | Event::Trimmed { .. }
        | Event::Finished { .. } => true,
        Event::Created { .. }
        | Event::Refused { .. }
        | Event::Interaction { .. }
        | Event::Context { .. }
        | Event::Requested { .. }
        | Event::Alert { .. }
        | Event::Ports { .. }
        | Event::Stage { .. }
        | Event::PromptDetected { .. }
        | Event::PromptAnswered { .. }
        | Event::PromptGone {}
        | Event::Input { .. }
        | Event::Resized { .. }
        | Event::Sampled { .. }
        | Event::Exited { .. } => false,
    }
}
