//! [`UsageMonitor`]: one task that samples all executions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{Backend, UsageReading};
use ostler_lifecycle::sampling::{SampleSchedule, WATCHED_INTERVAL};
use ostler_model::{ExecutionId, Timestamp, UsagePeaks, UsageSample};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::counters::UsageCounters;
use super::history::{SampleHistory, UsageHistory, UsageHistoryQuery};
use super::listener::UsageListener;
use crate::hooks::ExecutionObserver;

/// The most points of all histories together, each of 72 bytes: 28.8 MB. Beyond them, those of ended
/// executions are dropped, and then a new point takes the place of an old one.
const POINTS_MAX: usize = 400_000;
/// The most points that one sample adds to a history: one of each resolution.
const POINTS_PER_SAMPLE: usize = 3;
/// Ended executions whose history is kept, the last ones.
const ENDED_MAX: usize = 64;

/// Samples every execution that it was told of, and keeps what it saw: in memory only, so that an
/// engine knows nothing of the samples of an earlier one.
#[derive(Debug)]
pub(crate) struct UsageMonitor {
    backend: Arc<dyn Backend>,
    listeners: Vec<Arc<dyn UsageListener>>,
    epoch: Instant,
    inner: Mutex<MonitorInner>,
    /// An earlier sample is due than the task sleeps for.
    rescheduled: Notify,
    /// Counts the changes that readers wait for.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct MonitorInner {
    schedule: SampleSchedule,
    executions: HashMap<ExecutionId, MonitoredExecution>,
    /// Ended ones with a history, the last ended one at the end.
    ended: VecDeque<ExecutionId>,
    /// The points of all histories.
    points: usize,
    /// What the task sleeps for.
    sleeps_until: Option<Duration>,
}

/// What is kept of one execution.
#[derive(Debug, Default)]
struct MonitoredExecution {
    counters: UsageCounters,
    history: SampleHistory,
    peaks: UsagePeaks,
    last: Option<UsageSample>,
    /// The newest growth of its workspace that the enforcement of its limit measured.
    disk_bytes: Option<u64>,
    is_ended: bool,
}

impl UsageMonitor {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        listeners: Vec<Arc<dyn UsageListener>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            backend,
            listeners,
            epoch: Instant::now(),
            inner: Mutex::default(),
            rescheduled: Notify::new(),
            changes: watch::Sender::new(0),
        })
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// An attempt of this execution begins: it is sampled from now on.
    pub(crate) fn attempt_started(&self, id: ExecutionId) {
        let now = self.now();
        let mut inner = self.inner.lock();
        let execution = inner.executions.entry(id).or_default();
        execution.counters.begin_attempt();
        inner.schedule.insert(id, now);
        self.wake_for_next(&inner);
    }

    /// The attempt is over: no more samples, until another one begins.
    pub(crate) fn attempt_ended(&self, id: ExecutionId) {
        self.inner.lock().schedule.remove(id);
    }

    /// The growth of a workspace was measured. The largest number means more than can be measured.
    pub(crate) fn set_disk_bytes(&self, id: ExecutionId, bytes: u64) {
        if bytes == u64::MAX {
            return;
        }
        if let Some(execution) = self.inner.lock().executions.get_mut(&id) {
            execution.disk_bytes = Some(bytes);
            execution.peaks.disk_bytes = execution.peaks.disk_bytes.max(Some(bytes));
        }
    }

    /// The execution has ended; returns the largest values. What was sampled of it is kept while it
    /// is one of the last that ended.
    pub(crate) fn finish(&self, id: ExecutionId) -> UsagePeaks {
        let mut inner = self.inner.lock();
        inner.schedule.remove(id);
        let Some(execution) = inner.executions.get_mut(&id) else {
            return UsagePeaks::default();
        };
        let peaks = execution.peaks;
        if execution.last.is_none() {
            inner.executions.remove(&id);
        } else if !std::mem::replace(&mut execution.is_ended, true) {
            inner.ended.push_back(id);
            while inner.ended.len() > ENDED_MAX {
                inner.drop_oldest_ended();
            }
        }
        drop(inner);
        self.notify_readers();
        peaks
    }

    /// Somebody watches this execution: for the length of a lease it is sampled every second.
    pub(crate) fn watch(&self, id: ExecutionId) {
        let now = self.now();
        let mut inner = self.inner.lock();
        inner.schedule.watch(id, now);
        self.wake_for_next(&inner);
    }

    /// The newest sample of an execution.
    pub(crate) fn last_sample(&self, id: ExecutionId) -> Option<UsageSample> {
        self.inner.lock().executions.get(&id)?.last
    }

    /// The points of an execution that a query selects; none of one without samples.
    pub(crate) fn history(&self, id: ExecutionId, query: UsageHistoryQuery) -> UsageHistory {
        let inner = self.inner.lock();
        let now = Timestamp::now();
        match inner.executions.get(&id) {
            Some(execution) => execution.history.read(query, now),
            None => SampleHistory::default().read(query, now),
        }
    }

    /// Changes whenever samples were taken, and when an execution has ended.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A sample of an execution at this moment. It is not part of the history, and nobody is told
    /// of it. Of less than a second, processor time says little: then it is that of the last sample.
    pub(crate) async fn sample_now(&self, id: ExecutionId) -> Option<UsageSample> {
        let reading = self.backend.usage(&[id]).await.pop()??;
        let inner = self.inner.lock();
        let execution = inner.executions.get(&id);
        let mut counters = execution.map(|it| it.counters).unwrap_or_default();
        let mut sample = counters.advance(&reading, execution.and_then(|it| it.disk_bytes));
        if let Some(last) = execution.and_then(|it| it.last)
            && sample.at.duration_since(last.at).as_millis()
                < WATCHED_INTERVAL.as_millis().cast_signed()
        {
            sample.cpu_percent = last.cpu_percent;
        }
        Some(sample)
    }

    fn wake_for_next(&self, inner: &MonitorInner) {
        let due = inner.schedule.next_due();
        if inner
            .sleeps_until
            .is_none_or(|until| due.is_some_and(|due| due < until))
        {
            self.rescheduled.notify_one();
        }
    }

    fn notify_readers(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Samples for as long as the engine lives.
    pub(crate) async fn run(self: Arc<Self>, closing: CancellationToken) {
        loop {
            let due = {
                let mut inner = self.inner.lock();
                inner.sleeps_until = inner.schedule.next_due();
                inner.sleeps_until
            };
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                () = self.rescheduled.notified() => continue,
                () = sleep_until(self.epoch, due) => {}
            }
            let now = self.now();
            let ids = self.inner.lock().schedule.take_due(now);
            let readings = tokio::select! {
                biased;
                () = closing.cancelled() => return,
                readings = self.backend.usage(&ids) => readings,
            };
            self.record(&ids, &readings);
        }
    }

    fn record(&self, ids: &[ExecutionId], readings: &[Option<UsageReading>]) {
        for (&id, reading) in ids.iter().zip(readings) {
            let Some(reading) = reading else {
                continue;
            };
            let Some(sample) = self.inner.lock().record(id, reading) else {
                continue;
            };
            for listener in &self.listeners {
                listener.observed(id, &sample);
            }
        }
        if !ids.is_empty() {
            self.notify_readers();
        }
    }
}

impl MonitorInner {
    /// Adds a reading; none where the execution has ended meanwhile.
    fn record(&mut self, id: ExecutionId, reading: &UsageReading) -> Option<UsageSample> {
        while self.points + POINTS_PER_SAMPLE > POINTS_MAX && !self.ended.is_empty() {
            self.drop_oldest_ended();
        }
        let may_grow = self.points + POINTS_PER_SAMPLE <= POINTS_MAX;
        let execution = self.executions.get_mut(&id).filter(|it| !it.is_ended)?;
        let sample = execution.counters.advance(reading, execution.disk_bytes);
        execution.peaks.observe(&sample);
        execution.last = Some(sample);
        let grown = execution.history.push(&sample, may_grow);
        self.points = self.points.saturating_add_signed(grown);
        Some(sample)
    }

    fn drop_oldest_ended(&mut self) {
        if let Some(id) = self.ended.pop_front() {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: ExecutionId) {
        self.schedule.remove(id);
        if let Some(execution) = self.executions.remove(&id) {
            self.points = self.points.saturating_sub(execution.history.len());
        }
    }
}

impl ExecutionObserver for UsageMonitor {
    fn removed(&self, id: ExecutionId) {
        let mut inner = self.inner.lock();
        inner.ended.retain(|ended| *ended != id);
        inner.forget(id);
    }
}

async fn sleep_until(epoch: Instant, due: Option<Duration>) {
    match due.and_then(|due| epoch.checked_add(due)) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
