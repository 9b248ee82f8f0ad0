//! The journals whose files stay open: those of terminals that are viewed repeatedly.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::execution::ExecutionHandle;

/// The most executions with open journals; each takes three descriptors.
const OPEN_READERS: usize = 16;

/// The executions with open journals, the most recently used at the end.
#[derive(Debug, Default)]
pub(crate) struct OpenReaders(Mutex<VecDeque<Weak<ExecutionHandle>>>);

impl OpenReaders {
    /// Keeps the files of this execution open; those of the least recently used one are closed for
    /// it. They are also closed without watchers, when output is dropped, and at its end.
    pub(crate) fn keep_open(&self, entry: &Arc<ExecutionHandle>) {
        if !entry.open_reader() {
            return;
        }
        let mut open = self.0.lock();
        open.retain(|it| it.strong_count() > 0 && it.as_ptr() != Arc::as_ptr(entry));
        open.push_back(Arc::downgrade(entry));
        let excess = open.len().saturating_sub(OPEN_READERS);
        for old in open.drain(..excess) {
            if let Some(old) = old.upgrade() {
                old.close_reader();
            }
        }
    }
}
