//! Whether a shell holds the beginning of an input whose rest was not written: the command did not
//! read on, or the daemon died. What is typed next would follow it, in the middle of a paste.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};

use super::ExecutionHandle;

/// The empty file in the execution's directory that stands for it, for the next daemon.
const FILE: &str = "input.unfinished";

/// Whether it does, as far as this process knows.
#[derive(Debug, Default)]
pub(super) struct UnfinishedInput(AtomicBool);

impl ExecutionHandle {
    /// Whether the beginning of an input was written, and its rest was not.
    pub(crate) fn has_unfinished_input(&self) -> bool {
        self.unfinished_input.0.load(Ordering::Acquire) || self.dir.join(FILE).exists()
    }

    /// Records that an input is written that may stay unfinished.
    pub(crate) fn begin_input(&self) {
        self.unfinished_input.0.store(true, Ordering::Release);
        if let Err(error) = File::create(self.dir.join(FILE)) {
            // Only the next daemon would not know it.
            tracing::warn!(id = %self.id, %error, "cannot record that an input is unfinished");
        }
    }

    /// Records that the input is complete, or was discarded.
    pub(crate) fn end_input(&self) {
        // It may not be there, and else it costs the next script an interrupted prompt.
        let _absent = fs::remove_file(self.dir.join(FILE));
        self.unfinished_input.0.store(false, Ordering::Release);
    }
}
