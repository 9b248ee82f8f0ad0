//! Hearing that something about one execution changed, without reading any of it.

use std::sync::Arc;

use ostler_journal::Mark;
use tokio::sync::watch;

use crate::entry::{Entry, Live, Watching};
use crate::info::Info;

/// One execution, watched for change. Output is told of only while [`Watch::changed`] waits,
/// so a watch that pauses wakes nobody.
#[derive(Debug)]
pub struct Watch {
    entry: Arc<Entry>,
    marks: watch::Receiver<Mark>,
    live: watch::Receiver<Live>,
    /// Output and events that were seen.
    end: u64,
    events: u64,
}

impl Watch {
    pub(crate) fn new(entry: Arc<Entry>) -> Self {
        let mut watch = Self {
            marks: entry.marks.subscribe(),
            live: entry.live.subscribe(),
            entry,
            end: 0,
            events: 0,
        };
        watch.seen(&watch.entry.fresh_info());
        watch
    }

    /// What is known now. What it says is not told again.
    pub fn look(&mut self) -> Info {
        let info = self.entry.fresh_info();
        self.seen(&info);
        info
    }

    fn seen(&mut self, info: &Info) {
        self.end = info.output_end;
        self.events = info.state.events;
    }

    /// Until there is output or an event that the last [`Watch::look`] did not see. Nothing
    /// more may come after the end. Cancel safe.
    pub async fn changed(&mut self) {
        let _watching = Watching::new(&self.entry);
        let (end, events) = (self.end, self.events);
        // The senders live in the entry this holds, so neither wait can fail.
        tokio::select! {
            biased;
            _state = self.live.wait_for(|live| live.state.events > events) => {}
            _output = self.marks.wait_for(|mark| mark.end > end) => {}
        }
    }

    /// As [`Watch::changed`], whatever is printed.
    pub async fn state_changed(&mut self) {
        let events = self.events;
        let changed = self.live.wait_for(|live| live.state.events > events);
        // The sender lives in the entry this holds, so this cannot fail.
        let _changed = changed.await.is_ok();
    }
}
