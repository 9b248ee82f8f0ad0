//! The journals whose files stay open: those of terminals that are viewed repeatedly.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::execution::ExecutionHandle;

/// Executions whose journal stays open for readers, over all; each takes three descriptors.
const OPEN_READERS: usize = 16;

/// Those whose files are open, the one looked at last at the end.
#[derive(Debug, Default)]
pub(crate) struct OpenReaders(Mutex<VecDeque<Weak<ExecutionHandle>>>);

impl OpenReaders {
    /// Keeps the files of this one open; the one looked at longest ago is closed for it. They
    /// are closed too when nobody watches it any more, when output is dropped, and with its
    /// end.
    pub(crate) fn keep_open(&self, entry: &Arc<ExecutionHandle>) {
        if !entry.open_reader() {
            return;
        }
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
