//! [`AlertManager`]: the crossings of all living executions.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use ostler_journal::LedgerEntry;
use ostler_lifecycle::alert::{AlertCrossings, AlertTransition, UsageObservation};
use ostler_model::{AlertThresholds, Event, ExecutionId, UsageSample};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::notice::AlertNotice;
use super::store::{self, RaisedAlerts};
use crate::engine_inner::{EngineInner, LedgerDetail};
use crate::execution::ExecutionHandle;
use crate::hooks::ExecutionObserver;
use crate::ledger_checkpoint::LedgerCheckpoint;
use crate::monitor::UsageListener;

/// The most alerts that a subscriber may lag behind; of more, it learns how many it missed.
const NOTICES_MAX: usize = 256;

/// Tells of thresholds that are crossed. Called by the resource monitor.
#[derive(Debug)]
pub(crate) struct AlertManager {
    core: OnceLock<Weak<EngineInner>>,
    /// Those of executions that have no own ones.
    defaults: AlertThresholds,
    executions: Mutex<HashMap<ExecutionId, WatchedExecution>>,
    /// What is raised now, as the next engine learns of it.
    raised: Mutex<RaisedAlerts>,
    store: LedgerCheckpoint,
    notices: broadcast::Sender<AlertNotice>,
}

#[derive(Debug)]
struct WatchedExecution {
    thresholds: AlertThresholds,
    crossings: AlertCrossings,
}

impl AlertManager {
    pub(crate) fn new(defaults: AlertThresholds, state_dir: &Path) -> Self {
        Self {
            core: OnceLock::new(),
            defaults,
            executions: Mutex::default(),
            raised: Mutex::default(),
            store: LedgerCheckpoint::new(state_dir, store::FILE),
            notices: broadcast::Sender::new(NOTICES_MAX),
        }
    }

    /// Records alerts in this engine's ledger from now on; those that an earlier one raised are not
    /// raised again.
    pub(crate) fn record_in(&self, core: &Arc<EngineInner>) {
        // Called once, by whoever opens the engine.
        drop(self.core.set(Arc::downgrade(core)));
        if let Some(reader) = core.ledger_reader() {
            *self.raised.lock() = self.store.read(&reader, *core.ledger_end.borrow());
        }
    }

    /// Alerts from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<AlertNotice> {
        self.notices.subscribe()
    }

    /// What is asked for, else the settings, else what follows from the limits.
    fn thresholds(&self, entry: &ExecutionHandle) -> AlertThresholds {
        let request = entry.spec.request.as_deref();
        let own = request.map(|it| it.options.alerts).unwrap_or_default();
        let of_limits = AlertThresholds::of_limits(&entry.spec.policy.limits);
        own.or(self.defaults).or(of_limits)
    }

    /// The changes that a sample makes.
    fn transitions(&self, entry: &ExecutionHandle, sample: &UsageSample) -> Vec<AlertTransition> {
        let mut executions = self.executions.lock();
        let watched = executions
            .entry(entry.id)
            .or_insert_with(|| WatchedExecution {
                thresholds: self.thresholds(entry),
                crossings: AlertCrossings::raised_before(self.raised.lock().of(entry.id)),
            });
        if watched.thresholds == AlertThresholds::default() {
            return Vec::new();
        }
        let observation = UsageObservation {
            at: sample.at,
            started_at: entry.live.borrow().state.started_at,
            cpu_percent: sample.cpu_percent,
            memory_bytes: sample.memory_bytes,
            disk_bytes: sample.disk_bytes,
            output_bytes: watched.thresholds.idle.and_then(|_| output_bytes(entry)),
        };
        watched.crossings.observe(&watched.thresholds, &observation)
    }

    fn tell(&self, core: &EngineInner, entry: &ExecutionHandle, notice: AlertNotice) {
        let AlertNotice {
            kind,
            state,
            value,
            threshold,
            ..
        } = notice;
        tracing::warn!(execution = %entry.id, %kind, %state, value, threshold, "alert");
        core.write_ledger(&LedgerEntry {
            at: notice.at,
            execution: Some(entry.id),
            by: notice.owner.clone(),
            event: Event::Alert {
                alert: kind,
                state,
                value,
                threshold,
            },
            detail: LedgerDetail::new(),
        });
        let mut raised = self.raised.lock();
        raised.set(entry.id, kind, state);
        self.store.write(*core.ledger_end.borrow(), &*raised);
        drop(raised);
        // Without a subscriber there is nobody to tell.
        drop(self.notices.send(notice));
    }
}

/// The bytes of output so far; an execution that nobody watches does not report them.
fn output_bytes(entry: &ExecutionHandle) -> Option<u64> {
    entry.journal().ok()?.end().ok()
}

impl UsageListener for AlertManager {
    fn observed(&self, execution: ExecutionId, sample: &UsageSample) {
        let Some(core) = self.core.get().and_then(Weak::upgrade) else {
            return;
        };
        let Some(entry) = core.registry.get(execution) else {
            return;
        };
        if entry.is_finished() {
            return;
        }
        for transition in self.transitions(&entry, sample) {
            let AlertTransition {
                kind,
                state,
                value,
                threshold,
            } = transition;
            let notice = AlertNotice {
                at: sample.at,
                execution,
                owner: entry.owner().as_ref().clone(),
                command: entry.spec.command.display(),
                kind,
                state,
                value,
                threshold,
            };
            self.tell(&core, &entry, notice);
        }
    }
}

impl ExecutionObserver for AlertManager {
    fn ended(&self, id: ExecutionId) {
        self.executions.lock().remove(&id);
        self.raised.lock().forget(id);
    }

    fn removed(&self, id: ExecutionId) {
        self.ended(id);
    }
}
