//! The methods that start commands, wait for them, act on them and remove what has ended.

use std::time::Duration;

use ostler_engine::{
    CleanOutcome, Error, ExecutionInfo, StartGuard, StartRequest, StopRequest, WaitFor, WaitOutcome,
};
use ostler_model::{Caller, InputId, OverlayRequest, OverlayResponse, Signal};

use super::Engine;

impl Engine {
    /// Admits and starts a command; returns when the program runs. The id counts as disclosed.
    ///
    /// # Errors
    /// Everything admission refuses, and [`Error::SpawnFailed`] when the program could not be
    /// executed.
    pub async fn start(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<ExecutionInfo, Error> {
        self.0.start(caller, request).await
    }

    /// As [`Engine::start`], but the execution is cancelled when the returned guard is dropped
    /// before it was committed.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn start_guarded(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<StartGuard, Error> {
        self.0.start_guarded(caller, request).await
    }

    /// As [`Engine::start_guarded`], but returns before the program runs: one hop less for callers
    /// that wait for more than the spawn. [`ExecutionInfo::ensure_spawned`] reports whether it ran
    /// at all.
    ///
    /// # Errors
    /// Everything admission refuses.
    pub async fn start_unawaited(
        &self,
        caller: &Caller,
        request: StartRequest,
    ) -> Result<StartGuard, Error> {
        self.0.start_unawaited(caller, request).await
    }

    /// Whether this request would be started now if a slot within the quota were free. Admission
    /// refuses what [`Engine::start`] refuses; where the policy requires an approval, a question is
    /// opened. Nothing is started, and an approval stays valid for the start.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn check_start(&self, caller: &Caller, request: StartRequest) -> Result<(), Error> {
        self.0.check_start(caller, request).await
    }

    /// Starts and waits for the end, in one hop, for at most `timeout`, after which the id counts
    /// as disclosed. Dropping the future before it is ready cancels the execution.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn run(
        &self,
        caller: &Caller,
        request: StartRequest,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Error> {
        self.0.run(caller, request, timeout).await
    }

    /// Waits until a condition holds; the execution's end ends every wait.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Output`] while searching for a pattern.
    pub async fn wait(
        &self,
        caller: &Caller,
        id: &str,
        until: &WaitFor,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Error> {
        self.0.wait(caller, id, until, timeout).await
    }

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
        self.0.stop(caller, id, request).await
    }

    /// Cancels an execution on behalf of the client that started it: it ends like a request that
    /// was cancelled, and counts as cancelled as an MCP task. Dropping the future does not withdraw
    /// the cancellation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::StillRunning`].
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.0.cancel(caller, id).await
    }

    /// Sends one signal to the leader's process group.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`] when it has ended.
    pub async fn signal(&self, caller: &Caller, id: &str, signal: Signal) -> Result<(), Error> {
        self.0.signal(caller, id, signal).await
    }

    /// Writes to standard input or the terminal; returns how many bytes were accepted: fewer than
    /// given when the command does not read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ControlFailed`] when it has ended or has no input,
    /// [`Error::Leased`] while another caller holds its writer's lease.
    pub async fn write(&self, caller: &Caller, id: &str, bytes: Vec<u8>) -> Result<u64, Error> {
        self.0.write(caller, id, bytes).await
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
        self.0.write_once(caller, id, bytes, input).await
    }

    /// Closes standard input.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn close_input(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.0.close_input(caller, id).await
    }

    /// Freezes the whole tree; returns when it is frozen. A paused tree stays paused.
    ///
    /// # Errors
    /// When the caller does not see it, it has ended, or it cannot be frozen.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.0.pause(caller, id).await
    }

    /// Thaws a frozen tree.
    ///
    /// # Errors
    /// As for [`Engine::pause`].
    pub async fn resume(&self, caller: &Caller, id: &str) -> Result<ExecutionInfo, Error> {
        self.0.resume(caller, id).await
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
        self.0.handle_overlay(caller, id, request).await
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
        self.0.clean(caller, ids).await
    }
}
