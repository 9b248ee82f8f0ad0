//! Examinations of the machine that clients of the daemon ask for.

use std::sync::Arc;

use ostler_http::rest::{HostExamination, HostExaminer};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

/// Makes one examination at a time, each a task of its own: what it makes is removed also when the
/// client is gone.
#[derive(Debug)]
pub(super) struct TrackedExaminer {
    examiner: Arc<dyn HostExaminer>,
    tracker: TaskTracker,
    /// Held by the examination.
    turn: Arc<Mutex<()>>,
}

impl TrackedExaminer {
    pub(super) fn new(examiner: Arc<dyn HostExaminer>, tracker: TaskTracker) -> Self {
        Self {
            examiner,
            tracker,
            turn: Arc::default(),
        }
    }
}

impl HostExaminer for TrackedExaminer {
    fn examine(&self) -> HostExamination<'_> {
        let (examiner, turn) = (Arc::clone(&self.examiner), Arc::clone(&self.turn));
        let examination = self.tracker.spawn(async move {
            let _turn = turn.lock_owned().await;
            examiner.examine().await
        });
        Box::pin(async move {
            let result = examination.await;
            result.unwrap_or_else(|error| Err(format!("the examination was aborted: {error}")))
        })
    }
}
