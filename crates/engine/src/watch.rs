//! Change notifications of one execution, without reading its output.

use std::sync::Arc;

use ostler_journal::JournalEnd;
use tokio::sync::watch;

use crate::execution::{ExecutionHandle, LiveState, OutputWatchGuard};
use crate::info::ExecutionInfo;

/// Watches one execution for changes. Output counts only while [`ExecutionWatch::changed`] waits,
/// so a paused watch wakes no task.
#[derive(Debug)]
pub struct ExecutionWatch {
    entry: Arc<ExecutionHandle>,
    journal_end: watch::Receiver<JournalEnd>,
    live: watch::Receiver<LiveState>,
    /// The end of the output and events already reported.
    seen_end: u64,
    seen_events: u64,
}

impl ExecutionWatch {
    pub(crate) fn new(entry: Arc<ExecutionHandle>) -> Self {
        let mut watch = Self {
            journal_end: entry.journal_end.subscribe(),
            live: entry.live.subscribe(),
            entry,
            seen_end: 0,
            seen_events: 0,
        };
        watch.mark_seen(&watch.entry.fresh_info());
        watch
    }

    /// The current state. Its contents do not count as a change again.
    pub fn refresh(&mut self) -> ExecutionInfo {
        let info = self.entry.fresh_info();
        self.mark_seen(&info);
        info
    }

    fn mark_seen(&mut self, info: &ExecutionInfo) {
        self.seen_end = info.output_end;
        self.seen_events = info.state.events;
    }

    /// Resolves when there is output or an event that the last [`ExecutionWatch::refresh`] did not
    /// see. Nothing may follow after the end. Cancel safe.
    pub async fn changed(&mut self) {
        let _watching = OutputWatchGuard::new(&self.entry);
        let (end, events) = (self.seen_end, self.seen_events);
        // The senders live in the handle that this holds, so neither wait can fail.
        tokio::select! {
            biased;
            _state = self.live.wait_for(|live| live.state.events > events) => {}
            _output = self.journal_end.wait_for(|mark| mark.end > end) => {}
        }
    }

    /// As [`ExecutionWatch::changed`], ignoring output.
    pub async fn state_changed(&mut self) {
        let events = self.seen_events;
        let changed = self.live.wait_for(|live| live.state.events > events);
        // The sender is owned by the handle, so this cannot fail.
        let _changed = changed.await.is_ok();
    }
}
