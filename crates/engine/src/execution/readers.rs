//! Readers of an execution's output, as its driver knows of them.

use std::sync::Arc;

use super::handle::ExecutionHandle;

/// While it lives, the driver watches output and publishes its position.
#[derive(Debug)]
pub(crate) struct OutputWatchGuard(pub(crate) Arc<ExecutionHandle>);

impl OutputWatchGuard {
    /// Begins to watch.
    pub(crate) fn new(entry: &Arc<ExecutionHandle>) -> Self {
        entry.flags.send_modify(|flags| flags.watchers += 1);
        Self(Arc::clone(entry))
    }
}

impl Drop for OutputWatchGuard {
    fn drop(&mut self) {
        self.0.flags.send_modify(|flags| flags.watchers -= 1);
    }
}

/// A reader that must not miss output: while output goes to memory for lack of disk space, the
/// command waits for it as for the reader of a pipe.
#[derive(Debug)]
pub(crate) struct LosslessReader {
    entry: Arc<ExecutionHandle>,
    key: u64,
}

impl LosslessReader {
    /// Begins to read at `offset`.
    pub(crate) fn new(entry: &Arc<ExecutionHandle>, offset: u64) -> Self {
        let mut lossless = entry.lossless_offsets.lock();
        let key = lossless.last_key_value().map_or(0, |(last, _)| last + 1);
        lossless.insert(key, offset);
        entry.publish_retain_from(&lossless);
        drop(lossless);
        Self {
            entry: Arc::clone(entry),
            key,
        }
    }

    /// Records that everything before `offset` was read.
    pub(crate) fn set_read_offset(&self, offset: u64) {
        let mut lossless = self.entry.lossless_offsets.lock();
        lossless.insert(self.key, offset);
        // While the disk accepts all output, the offset has no effect.
        if self.entry.memory.get().is_some() {
            self.entry.publish_retain_from(&lossless);
        }
    }
}

impl Drop for LosslessReader {
    fn drop(&mut self) {
        let mut lossless = self.entry.lossless_offsets.lock();
        lossless.remove(&self.key);
        self.entry.publish_retain_from(&lossless);
    }
}
