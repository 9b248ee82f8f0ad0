//! When ended executions expire, and how much they take.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ostler_journal::retention::{ExecutionDiskUsage, StatePolicy, plan, state_policy};
use ostler_model::{ExecutionId, State, TerminationCause, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::execution::ExecutionHandle;
use crate::info::ExecutionInfo;

/// A client that waited for an end may query its result: for this many seconds after the end, a
/// full state directory does not remove this execution.
const RECENT_PROTECTED_S: u64 = 60;
/// How long a removal that failed is put off.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Bytes an execution takes besides its output and most of its events, about: spec, exit record,
/// index.
const OVERHEAD_BYTES: u64 = 16 * 1024;
/// Bytes of an event in its file, about.
const EVENT_BYTES: u64 = 256;
/// Files and directories of an execution, about.
const INODES: u64 = 7;
/// Bytes of output and events up to which an estimate is near enough; the directory of more is
/// measured.
const ESTIMATED_MAX_BYTES: u64 = 64 * 1024;

/// The expiry time of each ended execution, and their total size.
#[derive(Debug)]
pub(crate) struct RetentionScheduler {
    inner: Mutex<RetentionInner>,
    changed: Notify,
    policy: Option<StatePolicy>,
    /// Executions added so far.
    added: AtomicU64,
    /// Executions removed so far.
    removed: AtomicU64,
}

/// A time in microseconds since the epoch: a [`Timestamp`] in half of its memory, as there are two of
/// each ended execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EpochMicros(i64);

impl From<Timestamp> for EpochMicros {
    fn from(at: Timestamp) -> Self {
        Self(at.as_microsecond())
    }
}

impl From<EpochMicros> for Timestamp {
    fn from(at: EpochMicros) -> Self {
        // It was one: it is within the range.
        Self::from_microsecond(at.0).unwrap_or(Self::MAX)
    }
}

#[derive(Debug, Default)]
struct RetentionInner {
    due: BTreeSet<(EpochMicros, ExecutionId)>,
    /// Those whose removal failed: they are tried again at this time.
    retry_at: HashMap<ExecutionId, EpochMicros>,
    holdings: HashMap<ExecutionId, EndedUsage>,
    bytes: u64,
    inodes: u64,
}

/// The disk usage of an execution's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryUsage {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

/// How the disk usage of an ended execution is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageSource {
    /// From what is known of it: it is small.
    Estimated,
    /// From its directory.
    Measured,
}

impl DirectoryUsage {
    /// What an execution takes with all of its output, in one format, and its events.
    pub(crate) fn estimate(output_end: u64, state: &State) -> Self {
        Self {
            bytes: output_end + state.events * EVENT_BYTES + OVERHEAD_BYTES,
            inodes: INODES,
        }
    }
}

impl UsageSource {
    /// The source for an ended execution; whether its output `is_mirrored`.
    pub(crate) fn of_execution(output_end: u64, state: &State, is_mirrored: bool) -> Self {
        let estimate = DirectoryUsage::estimate(output_end, state);
        let is_small = estimate.bytes <= ESTIMATED_MAX_BYTES + OVERHEAD_BYTES;
        // The end that is known of lost output may be less than what its files hold.
        let cause = state.ending.as_ref().map(|it| &it.cause);
        let is_lost = matches!(cause, Some(TerminationCause::Lost { .. }));
        if is_small && state.trimmed_bytes == 0 && !is_mirrored && !is_lost {
            Self::Estimated
        } else {
            Self::Measured
        }
    }
}

/// Why an execution is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalReason {
    /// Its retention is over.
    Expired,
    /// The state directory is beyond its limit, and this is one of the oldest executions.
    DirectoryFull,
}

/// The disk usage of an ended execution.
#[derive(Debug, Clone, Copy)]
struct EndedUsage {
    usage: DirectoryUsage,
    ended_at: EpochMicros,
}

impl EndedUsage {
    fn of_execution(self, id: ExecutionId) -> ExecutionDiskUsage {
        ExecutionDiskUsage {
            id,
            bytes: self.usage.bytes,
            inodes: self.usage.inodes,
            ended_at: Some(self.ended_at.into()),
        }
    }
}

impl RetentionInner {
    /// Counts an execution no more; returns what it was counted with.
    fn subtract(&mut self, id: ExecutionId) -> Option<EndedUsage> {
        let holding = self.holdings.remove(&id)?;
        self.bytes -= holding.usage.bytes;
        self.inodes -= holding.usage.inodes;
        Some(holding)
    }
}

impl RetentionScheduler {
    pub(crate) fn new(state: &Path) -> Self {
        let policy = state_policy(state)
            .inspect_err(|error| tracing::warn!(%error, "the disk cannot be measured"))
            .ok();
        Self {
            inner: Mutex::default(),
            changed: Notify::new(),
            policy,
            added: AtomicU64::new(0),
            removed: AtomicU64::new(0),
        }
    }

    /// Adds an ended execution, which takes `usage`.
    pub(crate) fn add(&self, info: &ExecutionInfo, usage: DirectoryUsage) {
        let Some(ended_at) = info.state.ended_at else {
            return;
        };
        let mut inner = self.inner.lock();
        let retention = info.spec.retention;
        // A time beyond the range of timestamps means never.
        if let Some(due) = retention.and_then(|kept| ended_at.checked_add(kept).ok()) {
            let due = (EpochMicros::from(due), info.id);
            inner.due.insert(due);
            let before = inner
                .due
                .iter()
                .find(|it| !inner.retry_at.contains_key(&it.1));
            if before == Some(&due) {
                self.changed.notify_one();
            }
        }
        let holding = EndedUsage {
            usage,
            ended_at: ended_at.into(),
        };
        inner.subtract(info.id);
        inner.bytes += usage.bytes;
        inner.inodes += usage.inodes;
        inner.holdings.insert(info.id, holding);
        if self.is_full(&inner) {
            self.changed.notify_one();
        }
    }

    /// The disk usage of an ended execution changed; without effect once it was removed.
    pub(crate) fn update(&self, id: ExecutionId, usage: DirectoryUsage) {
        let mut inner = self.inner.lock();
        let Some(before) = inner.subtract(id) else {
            return;
        };
        inner.bytes += usage.bytes;
        inner.inodes += usage.inodes;
        let holding = EndedUsage { usage, ..before };
        inner.holdings.insert(id, holding);
        if self.is_full(&inner) {
            self.changed.notify_one();
        }
    }

    fn is_full(&self, inner: &RetentionInner) -> bool {
        self.policy.is_some_and(|policy| {
            inner.bytes > policy.max_bytes || inner.inodes > policy.max_inodes
        })
    }

    /// Removes an execution that is gone.
    pub(crate) fn remove(&self, entry: &ExecutionHandle) {
        let info = entry.info();
        let mut inner = self.inner.lock();
        inner.retry_at.remove(&entry.id);
        inner.subtract(entry.id);
        let due = info.state.ended_at.zip(info.spec.retention);
        if let Some(due) = due.and_then(|(ended, kept)| ended.checked_add(kept).ok()) {
            inner.due.remove(&(due.into(), entry.id));
        }
    }

    /// The executions to remove now, and when to check again.
    pub(crate) fn plan_removals(
        &self,
        now: Timestamp,
    ) -> (Vec<(ExecutionId, RemovalReason)>, Option<Duration>) {
        let inner = self.inner.lock();
        let reached = EpochMicros::from(now);
        let is_due = |id: &ExecutionId| inner.retry_at.get(id).is_none_or(|at| *at <= reached);
        let mut removals: Vec<(ExecutionId, RemovalReason)> = inner
            .due
            .iter()
            .take_while(|(due, _)| *due <= reached)
            .map(|(_, id)| *id)
            .filter(is_due)
            .map(|id| (id, RemovalReason::Expired))
            .collect();
        let next = inner.due.iter().find(|(due, _)| *due > reached);
        let retries = inner.retry_at.values().filter(|at| **at > reached);
        let next = next
            .map(|(due, _)| *due)
            .into_iter()
            .chain(retries.copied());
        let mut next = next.min().map(Timestamp::from);
        if let Some(policy) = self.policy.filter(|_| self.is_full(&inner)) {
            // What is removed anyway makes room.
            let expired: HashSet<ExecutionId> = removals.iter().map(|(id, _)| *id).collect();
            let usages = inner
                .holdings
                .iter()
                .filter(|(id, _)| !expired.contains(id));
            let mut holdings: Vec<ExecutionDiskUsage> =
                usages.map(|(id, usage)| usage.of_execution(*id)).collect();
            let protected_until = holdings
                .iter_mut()
                .filter_map(|it| protect_recent(it, now))
                .min();
            // What cannot be removed now takes space all the same: others have to go.
            for holding in holdings.iter_mut().filter(|it| !is_due(&it.id)) {
                holding.ended_at = None;
            }
            let oldest = plan(&holdings, policy).into_iter();
            removals.extend(oldest.map(|id| (id, RemovalReason::DirectoryFull)));
            next = next.into_iter().chain(protected_until).min();
        }
        let wait = next.and_then(|due| Duration::try_from(due.duration_since(now)).ok());
        (removals, wait)
    }

    /// Tries the removal of an execution again a little later.
    pub(crate) fn retry_later(&self, id: ExecutionId, now: Timestamp) {
        let at = now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX);
        self.inner.lock().retry_at.insert(id, at.into());
    }

    /// Removes an id that is no longer in the registry.
    pub(crate) fn forget(&self, id: ExecutionId) {
        let mut inner = self.inner.lock();
        inner.retry_at.remove(&id);
        inner.due.retain(|(_, due)| *due != id);
    }

    /// Counts an execution that ended; returns how many did so far.
    pub(crate) fn count_ended(&self) -> u64 {
        self.added.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts an execution that was removed; returns how many were so far.
    pub(crate) fn count_removed(&self) -> u64 {
        let before = self.removed.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        before + 1
    }

    /// How many executions were removed so far.
    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Resolves when there may be something new to remove.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Excludes recently ended executions from a plan, as if they ran; returns until when.
fn protect_recent(holding: &mut ExecutionDiskUsage, now: Timestamp) -> Option<Timestamp> {
    let until = holding.ended_at? + Duration::from_secs(RECENT_PROTECTED_S);
    (until > now).then(|| {
        holding.ended_at = None;
        until
    })
}

#[cfg(test)]
mod tests {
    use ostler_model::{LostReason, Termination};

    use super::*;

    #[test]
    fn what_has_just_ended_is_spared_for_a_while() {
        let ended = Timestamp::from_second(1_000).expect("a time");
        let holding = || ExecutionDiskUsage {
            id: ExecutionId::mint(),
            bytes: 1,
            inodes: 1,
            ended_at: Some(ended),
        };
        let until = ended + Duration::from_secs(RECENT_PROTECTED_S);
        let mut fresh = holding();
        assert_eq!(protect_recent(&mut fresh, ended), Some(until));
        assert_eq!(fresh.ended_at, None);
        let mut old = holding();
        assert_eq!(protect_recent(&mut old, until), None);
        assert_eq!(old.ended_at, Some(ended));
    }

    #[test]
    fn only_what_is_small_and_whole_is_estimated() {
        let source = |output_end, events, trimmed_bytes, is_mirrored| {
            let state = State {
                events,
                trimmed_bytes,
                ..State::default()
            };
            UsageSource::of_execution(output_end, &state, is_mirrored)
        };
        assert_eq!(source(4_096, 4, 0, false), UsageSource::Estimated);
        assert_eq!(
            source(ESTIMATED_MAX_BYTES + 1, 0, 0, false),
            UsageSource::Measured
        );
        assert_eq!(source(0, 10_000, 0, false), UsageSource::Measured);
        assert_eq!(source(4_096, 4, 1, false), UsageSource::Measured);
        assert_eq!(source(4_096, 4, 0, true), UsageSource::Measured);
        let lost = State {
            ending: Some(Termination::without_status(TerminationCause::Lost {
                reason: LostReason::FilesDamaged,
            })),
            ..State::default()
        };
        assert_eq!(
            UsageSource::of_execution(0, &lost, false),
            UsageSource::Measured
        );
    }
}
