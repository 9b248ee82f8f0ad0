//! Examinations of the machine for clients of the daemon.

use std::sync::Arc;

use ostler_http::rest::{HostExamination, HostExaminer};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::context::CliContext;
use crate::doctor::examine;
use crate::process_env::ProcessEnv;

/// Examines with the daemon's configuration, one examination at a time.
#[derive(Debug)]
pub(super) struct DaemonExaminer {
    context: Arc<CliContext>,
    tracker: TaskTracker,
    /// Held by the examination.
    turn: Arc<Mutex<()>>,
}

impl DaemonExaminer {
    pub(super) fn new(config: &Config, env: &ProcessEnv, tracker: TaskTracker) -> Self {
        Self {
            context: Arc::new(CliContext::of_daemon(config.clone(), env.clone())),
            tracker,
            turn: Arc::default(),
        }
    }
}

impl HostExaminer for DaemonExaminer {
    fn examine(&self) -> HostExamination<'_> {
        let (context, turn) = (Arc::clone(&self.context), Arc::clone(&self.turn));
        // A task of its own: what it makes is removed also when the client is gone.
        let examination = self.tracker.spawn(async move {
            let _turn = turn.lock_owned().await;
            let report = examine(&context).await;
            report
                .map(|report| report.body())
                .map_err(|error| error.to_string())
        });
        Box::pin(async move {
            let result = examination.await;
            result.unwrap_or_else(|error| Err(format!("the examination was aborted: {error}")))
        })
    }
}
