//! The events of an attempt in a container, on their way to the engine.

use std::sync::Arc;

use ostler_backend::{ExitRecord, LeaderOutcome, ProcessEvent, ReceivedEvent};
use ostler_model::termination::WaitStatus;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::pool::{ContainerPool, ContainerUse};

/// How many events wait for the engine; then the local backend waits, as without this.
const EVENTS_MAX: usize = 1;

/// What the end of an attempt says of its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContainerCondition {
    /// Nothing.
    Unremarkable,
    /// It may have ended.
    Uncertain,
    /// It has ended, the supervisor of the attempt in it was killed, or processes are left in it
    /// that cannot be.
    Broken,
}

/// Passes events on, in order, and gives the use of the container back before the end is reported:
/// who starts the next attempt then finds the container free.
#[derive(Debug)]
pub(crate) struct EventForwarder {
    /// The pool of the container.
    pub(crate) pool: Arc<ContainerPool>,
    /// Cancelled when the daemon ends, while attempts continue.
    pub(crate) stop: CancellationToken,
}

impl EventForwarder {
    /// Starts to forward, and returns the channel that events come out of.
    pub(crate) fn spawn(
        self,
        tasks: &TaskTracker,
        container_use: ContainerUse,
        events: mpsc::Receiver<ReceivedEvent>,
    ) -> mpsc::Receiver<ReceivedEvent> {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        tasks.spawn(self.forward(container_use, events, sender));
        receiver
    }

    async fn forward(
        self,
        container_use: ContainerUse,
        mut events: mpsc::Receiver<ReceivedEvent>,
        engine: mpsc::Sender<ReceivedEvent>,
    ) {
        loop {
            let event = self.stop.run_until_cancelled(events.recv()).await.flatten();
            let Some(event) = event else {
                // The daemon ends, or the backend is closed: the attempt continues.
                container_use.leave();
                return;
            };
            let Some(condition) = condition_at_end(&event.event) else {
                // Without a reader, the end is waited for all the same.
                let sent = self.stop.run_until_cancelled(engine.send(event)).await;
                let _no_reader = sent.and_then(Result::err);
                continue;
            };
            let name = container_use.name().clone();
            if condition == ContainerCondition::Broken {
                tracing::warn!(container = %name, "serves no further start, and is removed");
                self.pool.retire(&name);
            }
            drop(container_use);
            let _no_reader = engine.send(event).await.err();
            drop(engine);
            if condition == ContainerCondition::Uncertain {
                self.pool.check(&name).await;
            }
            return;
        }
    }
}

/// What the last event of an attempt says; none for any other.
fn condition_at_end(event: &ProcessEvent) -> Option<ContainerCondition> {
    if let ProcessEvent::Exited { record, .. } = event {
        return Some(condition_of(record));
    }
    matches!(event, ProcessEvent::Lost).then_some(ContainerCondition::Uncertain)
}

fn condition_of(record: &ExitRecord) -> ContainerCondition {
    if !record.survivors.is_empty() {
        return ContainerCondition::Broken;
    }
    match &record.outcome {
        LeaderOutcome::Ended {
            status: WaitStatus::Code(_),
            ..
        } => ContainerCondition::Unremarkable,
        LeaderOutcome::Ended { .. } | LeaderOutcome::SpawnFailed { .. } => {
            ContainerCondition::Uncertain
        }
        LeaderOutcome::ContainerLost => ContainerCondition::Broken,
    }
}
