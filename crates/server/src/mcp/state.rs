//! What every MCP client of one daemon shares.

use std::sync::Arc;
use std::time::Duration;

use ostler_engine::Engine;
use ostler_model::Caller;

use super::elicit::StateSealer;
use super::notifications::Notifications;
use super::read_positions::ReadPositions;
use super::tasks::TaskOrigins;

/// A call that still runs after this long becomes a task, where the client knows tasks.
pub const TASK_AFTER_MS: u64 = 5_000;

/// Shared by every client, whatever its transport. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpState(Arc<McpShared>);

#[derive(Debug)]
struct McpShared {
    engine: Engine,
    options: McpOptions,
    notifications: Notifications,
    tasks: TaskOrigins,
    state_sealer: StateSealer,
    read_positions: ReadPositions,
}

/// How the MCP face behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpOptions {
    /// Which tools answer structured content.
    pub structured: Structured,
    /// When long calls become tasks; none: never.
    pub task_after: Option<Duration>,
}

/// Which tools answer structured content: clients that get it often show the model
/// nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Structured {
    /// Status tools, not those that bear output.
    #[default]
    Auto,
    /// Every tool.
    Always,
    /// None.
    Never,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            structured: Structured::default(),
            task_after: Some(Duration::from_millis(TASK_AFTER_MS)),
        }
    }
}

impl McpState {
    /// A desk in front of this engine. To be called in a runtime: a task on it hears the
    /// engine until the last clone is gone, or [`McpState::close`].
    #[must_use]
    pub fn new(engine: Engine, options: McpOptions) -> Self {
        let notifications = Notifications::new(engine.clone());
        Self(Arc::new(McpShared {
            engine,
            options,
            notifications,
            tasks: TaskOrigins::default(),
            state_sealer: StateSealer::new(),
            read_positions: ReadPositions::default(),
        }))
    }

    /// The engine behind it.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// How the MCP face behaves.
    #[must_use]
    pub fn options(&self) -> &McpOptions {
        &self.0.options
    }

    /// Ends the caller's session, and what it was not told yet with it: a later one of
    /// the same name hears nothing of it.
    ///
    /// # Errors
    /// As [`Engine::end_session`].
    pub async fn end_session(&self, caller: &Caller) -> Result<(), ostler_engine::Error> {
        let ended = self.engine().end_session(caller).await;
        self.notifications().forget_session(caller);
        ended
    }

    /// Ends the desk's own tasks; clients are told nothing new from then on.
    pub async fn close(&self) {
        self.notifications().close().await;
    }

    /// What clients have not been told yet.
    pub(super) fn notifications(&self) -> &Notifications {
        &self.0.notifications
    }

    /// How far clients have been shown terminals' output.
    pub(super) fn read_positions(&self) -> &ReadPositions {
        &self.0.read_positions
    }

    /// Calls that became tasks.
    pub(super) fn tasks(&self) -> &TaskOrigins {
        &self.0.tasks
    }

    /// Seals the state of calls that wait for a person's answer.
    pub(super) fn state_sealer(&self) -> &StateSealer {
        &self.0.state_sealer
    }
}
