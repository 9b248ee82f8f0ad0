//! What is known of the input that was written: how many writes are finished, and whether a shell holds
//! the beginning of one whose rest was not written, because the command did not read on, or the daemon
//! died. What is typed next would follow it, in the middle of a paste.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::ExecutionHandle;

/// The empty file in the execution's directory that stands for it, for the next daemon.
const FILE: &str = "input.unfinished";

/// What this process knows of it.
#[derive(Debug, Default)]
pub(super) struct InputRecord {
    finished_writes: AtomicU64,
    is_unfinished: AtomicBool,
}

impl ExecutionHandle {
    /// How many writes are finished: keys, lines and answers, but no replies to queries of the terminal.
    pub(crate) fn finished_writes(&self) -> u64 {
        self.input_record.finished_writes.load(Ordering::Acquire)
    }

    /// Counts a finished write.
    pub(crate) fn count_finished_write(&self) {
        let _before = self
            .input_record
            .finished_writes
            .fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the beginning of an input was written, and its rest was not.
    pub(crate) fn has_unfinished_input(&self) -> bool {
        self.input_record.is_unfinished.load(Ordering::Acquire) || self.dir.join(FILE).exists()
    }

    /// Records that an input is written that may stay unfinished.
    pub(crate) fn begin_input(&self) {
        self.input_record
            .is_unfinished
            .store(true, Ordering::Release);
        if let Err(error) = File::create(self.dir.join(FILE)) {
            // Only the next daemon would not know it.
            tracing::warn!(id = %self.id, %error, "cannot record that an input is unfinished");
        }
    }

    /// Records that the input is complete, or was discarded.
    pub(crate) fn end_input(&self) {
        // It may not be there, and else it costs the next script an interrupted prompt.
        let _absent = fs::remove_file(self.dir.join(FILE));
        self.input_record
            .is_unfinished
            .store(false, Ordering::Release);
    }
}
