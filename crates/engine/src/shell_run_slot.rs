//! Which script of a caller runs in a shell session; `shell` decides, the execution keeps it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The script that runs in one session for a caller.
#[derive(Debug, Default)]
pub(crate) struct RunSlot(Mutex<RunSlotState>);

#[derive(Debug, Default)]
pub(crate) struct RunSlotState {
    /// The script in one line, for messages; none while the slot is free.
    pub(crate) script: Option<String>,
    /// Offset at which the last script had ended and the prompt was back.
    pub(crate) free_since: Option<u64>,
}

impl RunSlot {
    /// The slot, exclusively.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RunSlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offset at which the prompt was empty, because the text of the last script was gone.
    pub(crate) fn free_since(&self) -> Option<u64> {
        self.lock().free_since
    }
}
