//! The API of [`Engine`] that acts on executions: stopping, input, freezing, overlays, removal.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{ControlCommand, IdempotentInput};
use ostler_model::{
    Caller, ExecutionId, InputId, OverlayRequest, OverlayResponse, RequestedAction, Signal,
    StopReason, TermSize,
};

use super::Engine;
use crate::admission::arguments::{self, ArgumentError};
use crate::error::Error;
use crate::execution::{WriteKind, forward_command, set_frozen, submit_write, write_input};
use crate::info::{CleanOutcome, ExecutionInfo};
use crate::request::StopRequest;
use crate::{overlay, retention, stop};

impl Engine {
    /// Stops the execution, and returns when it has ended. Concurrent stops share the first one's
    /// reason; one with `force` escalates at once. Stopping an ended execution changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn stop(
        &self,
        caller: &Caller,
        id: &str,
        request: StopRequest,
    ) -> Result<ExecutionInfo, Error> {
        let reason = request.reason.as_ref().map_or(0, String::len);
        arguments::check_length("the reason", reason, arguments::REASON_BYTES)?;
        let entry = self.inner.registry.find(caller, id)?;
        let grace = match request.grace {
            _ if request.force => Duration::ZERO,
            Some(grace) => grace,
            None => self.inner.grace_of(&entry.spec),
        };
        let order = StopReason::Requested {
            by: caller.owner.principal.clone(),
            reason: request.reason,
            force: request.force,
            interrupt: false,
        };
        stop::stop_and_wait(&self.inner, &entry, order, grace).await?;
        Ok(entry.info())
    }

    /// Cancels an execution on behalf of the client that started it: it ends like a request that
    /// was cancelled, and counts as cancelled as an MCP task. Dropping the future does not withdraw
    /// the cancellation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let grace = self.inner.grace_of(&entry.spec);
        stop::stop_and_wait(&self.inner, &entry, StopReason::Cancelled, grace).await?;
        Ok(entry.info())
    }

    /// Sends SIGINT, and stops the execution where it has not ended after `wait`; returns when it
    /// has ended. Dropping the future does not withdraw the stop.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`], [`Error::StillRunning`].
    pub async fn interrupt(
        &self,
        caller: &Caller,
        id: &str,
        wait: Duration,
        reason: String,
    ) -> Result<ExecutionInfo, Error> {
        arguments::check_length("the reason", reason.len(), arguments::REASON_BYTES)?;
        let entry = self.inner.registry.find(caller, id)?;
        let order = StopReason::Requested {
            by: caller.owner.principal.clone(),
            reason: Some(reason),
            force: false,
            interrupt: true,
        };
        let (core, interrupted) = (Arc::clone(&self.inner), Arc::clone(&entry));
        let work = self
            .inner
            .tracker
            .spawn(async move { stop::interrupt_and_stop(&core, &interrupted, order, wait).await });
        work.await.map_err(|_| Error::Closing)??;
        Ok(entry.info())
    }

    /// Sends one signal to the leader's process group.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`] when it has ended.
    pub async fn signal(&self, caller: &Caller, id: &str, signal: Signal) -> Result<(), Error> {
        let entry = self.inner.registry.find(caller, id)?;
        forward_command(&entry, ControlCommand::Signal(signal)).await?;
        let action = RequestedAction::Signal { signal };
        let by = caller.owner.principal.clone();
        self.inner.record_requested(&entry, action, by);
        Ok(())
    }

    /// Writes to standard input or the terminal; returns how many bytes were accepted: fewer than
    /// given when the command does not read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`] when it has ended or has no input,
    /// [`Error::Leased`] while another caller holds its writer's lease.
    pub async fn write(&self, caller: &Caller, id: &str, bytes: Vec<u8>) -> Result<u64, Error> {
        self.write_or_close(caller, id, bytes, false).await
    }

    /// As [`Engine::write`], at most once for each id and these bytes, also under the next engine: an
    /// input that is sent again goes on after what was accepted of it.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn write_once(
        &self,
        caller: &Caller,
        id: &str,
        bytes: Vec<u8>,
        input: InputId,
    ) -> Result<u64, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        self.leases.check(entry.id, None)?;
        let kind = WriteKind::Idempotent(IdempotentInput {
            id: input,
            output_end: 0,
            len: bytes.len() as u64,
        });
        let result = submit_write(&entry, caller, bytes, false, kind).await?;
        Ok(result.accepted)
    }

    /// Closes standard input.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn close_input(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.write_or_close(caller, id, Vec::new(), true)
            .await
            .map(drop)
    }

    /// Resizes the terminal.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn resize(&self, caller: &Caller, id: &str, size: TermSize) -> Result<(), Error> {
        arguments::check_terminal_size(size)?;
        let entry = self.inner.registry.find(caller, id)?;
        self.leases.check(entry.id, None)?;
        forward_command(&entry, ControlCommand::Resize(size)).await
    }

    /// Freezes the whole tree; returns when it is frozen. A paused tree stays paused.
    ///
    /// # Errors
    /// When the caller does not see it, it has ended, or it cannot be frozen.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.set_frozen(caller, id, true).await
    }

    /// Thaws a frozen tree.
    ///
    /// # Errors
    /// As for [`Engine::pause`].
    pub async fn resume(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.set_frozen(caller, id, false).await
    }

    async fn set_frozen(
        &self,
        caller: &Caller,
        id: &str,
        frozen: bool,
    ) -> Result<ExecutionInfo, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        set_frozen(&entry, caller.owner.principal.clone(), frozen).await?;
        Ok(entry.fresh_info())
    }

    /// Lists, shows, commits or discards what an execution wrote to its overlay.
    ///
    /// # Errors
    /// When the caller does not see it, it has no overlay, it still runs (commit, discard), or a
    /// decision was already made.
    pub async fn handle_overlay(
        &self,
        caller: &Caller,
        id: &str,
        request: OverlayRequest,
    ) -> Result<OverlayResponse, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        let by = caller.owner.principal.clone();
        overlay::handle(&self.inner, entry, by, request).await
    }

    /// The executions whose changes in an overlay wait for a decision, or may: those that still run.
    pub async fn undecided_overlays(&self) -> Vec<ExecutionId> {
        let mut undecided = Vec::new();
        for entry in self.inner.registry.all_with(|_| true) {
            if overlay::may_be_undecided(&self.inner, &entry).await {
                undecided.push(entry.id);
            }
        }
        undecided
    }

    /// Removes ended executions with everything they left on disk; one outcome per id, in
    /// the order given.
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty list.
    pub async fn clean(
        &self,
        caller: &Caller,
        ids: &[String],
    ) -> Result<Vec<(String, CleanOutcome)>, Error> {
        if ids.is_empty() {
            return Err(ArgumentError::EmptyIdList.into());
        }
        let mut outcomes = Vec::with_capacity(ids.len());
        for id in ids {
            let outcome = match self.inner.registry.find(caller, id) {
                Ok(entry) if !entry.is_finished() => CleanOutcome::Running,
                Ok(entry) => {
                    let by = caller.owner.principal.clone();
                    retention::remove(&self.inner, entry.id, Some(by)).await
                }
                Err(_) => CleanOutcome::NotFound,
            };
            outcomes.push((id.clone(), outcome));
        }
        Ok(outcomes)
    }

    async fn write_or_close(
        &self,
        caller: &Caller,
        id: &str,
        bytes: Vec<u8>,
        close: bool,
    ) -> Result<u64, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        self.leases.check(entry.id, None)?;
        let result = write_input(&entry, caller, bytes, close).await?;
        Ok(result.accepted)
    }
}
