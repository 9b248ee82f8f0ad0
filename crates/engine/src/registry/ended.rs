//! Ended executions: the most recently used ones in full, the others summarized.

use std::sync::Arc;

use ostler_model::ExecutionId;

use super::{Registry, RegistryInner, StoredEntry};
use crate::execution::ExecutionHandle;
use crate::info::ExecutionInfo;
use crate::summary::ExecutionSummary;

/// Ended executions that are kept in full, the most recently used ones.
const ENDED_FULL_MAX: usize = 64;
/// Ended executions that are considered for summarizing with each end.
const SUMMARIZE_BATCH: usize = 4;

impl Registry {
    /// Notes that an execution has ended and is fully written: it is summarized once no handle is
    /// held.
    pub(crate) fn on_ended(&self, id: ExecutionId) {
        self.inner.lock().ended.push_back(id);
        self.summarize_oldest();
    }

    /// Notes that recovery has loaded everything, and summarizes step by step while `may_continue`.
    pub(crate) fn on_loaded(&self, may_continue: impl Fn() -> bool) {
        let mut remaining = {
            let mut inner = self.inner.lock();
            inner.is_loaded = true;
            inner.ended.len()
        };
        while remaining > 0 && may_continue() {
            self.summarize_oldest();
            remaining = remaining.saturating_sub(SUMMARIZE_BATCH);
        }
    }

    /// Summarizes a few of the ended executions that were kept in full longest.
    pub(super) fn summarize_oldest(&self) {
        let oldest = self.inner.lock().take_oldest_ended(SUMMARIZE_BATCH);
        for entry in oldest {
            let info = entry.info();
            let summary =
                ExecutionSummary::from_execution(&entry, &info, &mut self.interner.lock());
            if let Some(summary) = summary {
                let mut inner = self.inner.lock();
                inner.replace_with_summary(&entry, &info, summary);
            }
        }
    }
}

impl RegistryInner {
    /// Takes up to `limit` of the ended executions that were kept in full longest out of the queue, and
    /// returns those that nobody else holds; the others are considered again later.
    fn take_oldest_ended(&mut self, limit: usize) -> Vec<Arc<ExecutionHandle>> {
        if !self.is_loaded {
            return Vec::new();
        }
        let excess = self.ended.len().saturating_sub(ENDED_FULL_MAX);
        let mut unused = Vec::new();
        for _ in 0..limit.min(excess) {
            let Some(id) = self.ended.pop_front() else {
                break;
            };
            match self.entries.get(&id) {
                Some(StoredEntry::Full(entry)) if is_held_by(entry, 1) => {
                    unused.push(Arc::clone(entry));
                }
                Some(StoredEntry::Full(_)) => self.ended.push_back(id),
                Some(StoredEntry::Summary(_)) | None => {}
            }
        }
        unused
    }

    /// Keeps the summary instead of the execution, unless somebody holds or has changed it by now.
    fn replace_with_summary(
        &mut self,
        entry: &Arc<ExecutionHandle>,
        info: &ExecutionInfo,
        summary: ExecutionSummary,
    ) {
        let id = entry.id;
        match self.entries.get_mut(&id) {
            Some(StoredEntry::Full(known)) if !Arc::ptr_eq(known, entry) => {}
            Some(stored @ StoredEntry::Full(_))
                if is_held_by(entry, 2) && summary.is_current(entry, info) =>
            {
                *stored = StoredEntry::Summary(Arc::new(summary));
            }
            Some(StoredEntry::Full(_)) => self.ended.push_back(id),
            Some(StoredEntry::Summary(_)) | None => {}
        }
    }
}

fn is_held_by(entry: &Arc<ExecutionHandle>, holders: usize) -> bool {
    Arc::strong_count(entry) == holders && Arc::weak_count(entry) == 0
}
