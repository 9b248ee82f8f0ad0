//! The thread that folds the ledger into the history.
//!
//! It runs at the lowest priority, so that commands and answers come first. It shares no lock with
//! the engine: at that priority it may be interrupted for long while it holds one.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use ostler_model::Timestamp;
use ostler_store::{HistoryUpdater, UpdateOutcome};
use tokio::sync::oneshot;

/// Added to the nice value of the thread (nice(2); on Linux it is one of each thread).
const NICENESS: i32 = 19;

/// A request for one step.
struct StepRequest {
    /// The number of ledger entries.
    end: u64,
    reply: oneshot::Sender<UpdateOutcome>,
}

/// Takes one step at a time.
#[derive(Debug)]
pub(super) struct UpdateThread {
    requests: SyncSender<StepRequest>,
    thread: JoinHandle<()>,
}

impl UpdateThread {
    /// Starts the thread.
    pub(super) fn spawn(updater: HistoryUpdater) -> io::Result<Self> {
        let (requests, receiver) = sync_channel(1);
        let thread = Builder::new()
            .name("history".to_owned())
            .spawn(move || take_steps(updater, &receiver))?;
        Ok(Self { requests, thread })
    }

    /// One step towards `end` entries; none once the thread has ended.
    pub(super) async fn step(&self, end: u64) -> Option<UpdateOutcome> {
        let (reply, outcome) = oneshot::channel();
        self.requests.try_send(StepRequest { end, reply }).ok()?;
        outcome.await.ok()
    }

    /// Waits for its end.
    pub(super) async fn join(self) {
        drop(self.requests);
        let joined = tokio::task::spawn_blocking(|| self.thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the thread of the history ended by a panic");
        }
    }
}

fn take_steps(mut updater: HistoryUpdater, requests: &Receiver<StepRequest>) {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "the history is written at the priority of requests");
    }
    while let Ok(StepRequest { end, reply }) = requests.recv() {
        // Nobody waits for the outcome once the daemon stops.
        let _gone = reply.send(updater.step(end, Timestamp::now())).is_err();
    }
}
