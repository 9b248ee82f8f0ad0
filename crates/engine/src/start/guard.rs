//! [`StartGuard`]: an execution that is cancelled when its only caller goes.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::ExecutionId;

use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::info::{ExecutionInfo, QueueWait, WaitOutcome};
use crate::request::WaitFor;
use crate::wait;

/// An execution whose id was not disclosed yet: dropping the guard cancels it, unless
/// [`StartGuard::commit`] recorded that the caller has the id.
#[derive(Debug)]
#[must_use = "dropping it cancels the execution"]
pub struct StartGuard {
    pub(super) inner: Arc<EngineInner>,
    pub(super) execution: Arc<ExecutionHandle>,
}

impl StartGuard {
    /// Its id; not disclosed yet.
    #[must_use]
    pub fn id(&self) -> ExecutionId {
        self.execution.id
    }

    /// The execution.
    pub(crate) fn execution(&self) -> &ExecutionHandle {
        &self.execution
    }

    /// Its current state.
    #[must_use]
    pub fn info(&self) -> ExecutionInfo {
        self.execution.fresh_info()
    }

    /// How long it waited for its slot; none where one was free.
    #[must_use]
    pub fn queue_wait(&self) -> Option<QueueWait> {
        self.execution.origin.queue_wait
    }

    /// Waits as [`Engine::wait`](crate::Engine::wait) does.
    ///
    /// # Errors
    /// As [`Engine::wait`](crate::Engine::wait).
    pub async fn wait(
        &self,
        until: &WaitFor,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Error> {
        wait::wait(&self.inner, &self.execution, until, timeout).await
    }

    /// Discloses the id: the execution continues without this guard, and after the engine.
    ///
    /// # Errors
    /// [`Error::Closing`] where the engine shuts down and stops the execution, because nobody had
    /// its id.
    pub fn commit(self) -> Result<ExecutionInfo, Error> {
        self.disclose()?;
        Ok(self.execution.fresh_info())
    }

    /// As [`StartGuard::commit`], without returning the state.
    ///
    /// # Errors
    /// As [`StartGuard::commit`].
    pub fn detach(self) -> Result<(), Error> {
        self.disclose()
    }

    fn disclose(&self) -> Result<(), Error> {
        // Another caller that shared the start may have cancelled it: its state says so.
        if self.execution.disclose_id() || !self.inner.closing.is_cancelled() {
            Ok(())
        } else {
            Err(Error::Closing)
        }
    }

    /// Resolves when the program runs.
    pub(crate) async fn wait_started(&self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = wait::wait_started(&self.execution) => self.execution.info().ensure_spawned(),
            // The driver may have finished already, and reports nothing more.
            () = self.inner.closing.cancelled() => Err(Error::Closing),
        }
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        // An engine that shuts down decides by itself which executions continue.
        if !self.execution.is_id_disclosed() && !self.inner.closing.is_cancelled() {
            self.execution.cancel();
        }
    }
}
