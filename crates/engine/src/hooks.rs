//! What lower layers need of those that are built on executions: defined here, implemented by
//! terminals, interactions and services, and handed over when the engine is opened.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ostler_backend::TerminalQuery;
use ostler_model::{Caller, ExecutionId, Owner};

use crate::execution::ExecutionHandle;
use crate::info::Prompt;
use crate::prompt::ScreenPrompt;

/// Keeps state by execution or by owner, and learns of their changes. Called from drivers: an
/// implementation never blocks.
pub(crate) trait ExecutionObserver: fmt::Debug + Send + Sync {
    /// The execution has ended; it is still there.
    fn ended(&self, _id: ExecutionId) {}

    /// What the execution wrote to its overlay was committed or discarded.
    fn overlay_decided(&self, _id: ExecutionId) {}

    /// No program could be started for the execution; its end is not published yet.
    fn spawn_failed(&self, _id: ExecutionId) {}

    /// The execution was removed with its files: nothing may be kept of it.
    fn removed(&self, _id: ExecutionId) {}

    /// The execution received a line of input that answers no question of ours.
    fn input_arrived(&self, _id: ExecutionId) {}

    /// A prompt of the execution was found, and is in its events; any check finds it again while it
    /// waits.
    fn prompt_found(&self, _entry: &ExecutionHandle, _prompt: &Prompt) {}

    /// The execution is about to pass to this owner.
    fn owner_changed(&self, _id: ExecutionId, _owner: &Owner) {}

    /// The caller's session has ended, in the projects that the caller is limited to.
    fn session_ended(&self, _caller: &Caller) {}
}

/// How much may be parsed for a checkpoint of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckpointEffort {
    /// As for a viewer: the command has ended.
    Full,
    /// Little: the driver of a running command waits for it.
    Brief,
}

/// What becomes of a screen that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenRetention {
    /// It stays in memory, as the one that was used last.
    Keep,
    /// It stays where there is room, and takes nobody's place: no client views it.
    KeepWithinLimit,
}

/// The screens of terminals, which are folds of the output.
pub(crate) trait TerminalScreens: fmt::Debug + Send + Sync {
    /// Stores a checkpoint where retention is about to drop output.
    fn checkpoint_before_trim<'a>(
        &'a self,
        entry: &'a Arc<ExecutionHandle>,
        effort: CheckpointEffort,
    ) -> BoxFuture<'a, ()>;

    /// Replies to a terminal query that ended at an offset, where no client's terminal does.
    fn reply_to_query(
        self: Arc<Self>,
        entry: Arc<ExecutionHandle>,
        query: TerminalQuery,
        end: u64,
    ) -> BoxFuture<'static, ()>;

    /// The screen as a prompt is looked for on it; none where it cannot be read.
    fn prompt_screen<'a>(
        &'a self,
        entry: &'a Arc<ExecutionHandle>,
        retention: ScreenRetention,
    ) -> BoxFuture<'a, Option<ScreenPrompt>>;
}
