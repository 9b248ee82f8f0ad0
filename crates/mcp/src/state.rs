//! State shared by every MCP client of one daemon.

use std::sync::Arc;

use ostler_engine::Engine;
use ostler_interface::history::History;
use ostler_model::Caller;

use super::notifications::Notifications;
use super::options::McpOptions;
use super::read_positions::ReadPositions;
use super::request_state::StateSealer;
use super::task_origins::TaskOrigins;

/// Shared by every client, whatever its transport. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpState(Arc<McpShared>);

#[derive(Debug)]
struct McpShared {
    engine: Engine,
    options: McpOptions,
    history: Option<History>,
    notifications: Notifications,
    task_origins: TaskOrigins,
    state_sealer: StateSealer,
    read_positions: ReadPositions,
}

impl McpState {
    /// The state over this engine. Must be called within a tokio runtime: a task on it reads engine
    /// events until the last clone is gone, or [`McpState::close`].
    #[must_use]
    pub fn new(engine: Engine, options: McpOptions) -> Self {
        Self::with_history(engine, options, None)
    }

    /// The same with a history of executions.
    #[must_use]
    pub fn with_history(engine: Engine, options: McpOptions, history: Option<History>) -> Self {
        let notifications = Notifications::new(engine.clone());
        Self(Arc::new(McpShared {
            engine,
            options,
            history,
            notifications,
            task_origins: TaskOrigins::default(),
            state_sealer: StateSealer::new(),
            read_positions: ReadPositions::default(),
        }))
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &McpOptions {
        &self.0.options
    }

    /// Ends the caller's session together with its pending notifications: a later session of the
    /// same name gets none of them.
    ///
    /// # Errors
    /// As [`Engine::end_session`].
    pub async fn end_session(&self, caller: &Caller) -> Result<(), ostler_engine::Error> {
        let ended = self.engine().end_session(caller).await;
        self.notifications().forget_session(caller);
        ended
    }

    /// Ends the tasks of this state; clients get no more notifications.
    pub async fn close(&self) {
        self.notifications().close().await;
    }

    /// The history of executions, where one is kept.
    pub(super) fn history(&self) -> Option<&History> {
        self.0.history.as_ref()
    }

    /// The pending notifications.
    pub(super) fn notifications(&self) -> &Notifications {
        &self.0.notifications
    }

    /// How much of terminals' output clients have been shown.
    pub(super) fn read_positions(&self) -> &ReadPositions {
        &self.0.read_positions
    }

    /// Calls that became tasks.
    pub(super) fn task_origins(&self) -> &TaskOrigins {
        &self.0.task_origins
    }

    /// Seals the state of calls that wait for a person's answer.
    pub(super) fn state_sealer(&self) -> &StateSealer {
        &self.0.state_sealer
    }
}
