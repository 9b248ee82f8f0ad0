//! Watches for a line of output on behalf of an agent that does something else meanwhile.

use std::sync::Arc;

use ostler_engine::{WaitEnd, WaitFor};
use ostler_journal::Pattern;
use ostler_model::{Caller, Cursor};

use super::handle::Notifications;
use super::notification::AgentNotification;
use ostler_interface::error::ApiError;

impl Notifications {
    /// Notifies this caller's session once when a line of `id` matches, from a position on. The
    /// watch ends with the match or the execution.
    ///
    /// # Errors
    /// When the execution is unknown or foreign, or the session has too many watches.
    pub(crate) fn watch_pattern(
        &self,
        caller: &Caller,
        id: &str,
        pattern: Pattern,
        after: Cursor,
    ) -> Result<(), ApiError> {
        let info = self.engine.info(caller, id)?;
        self.hub.reserve_watch(caller)?;
        let (hub, engine) = (Arc::clone(&self.hub), self.engine.clone());
        let (caller, closing) = (caller.clone(), self.closing.clone());
        self.tasks.spawn(async move {
            let (id, until) = (info.id.to_string(), WaitFor::PatternAfter(pattern, after));
            let waiting = engine.wait(&caller, &id, &until, None);
            let Some(outcome) = closing.run_until_cancelled(waiting).await else {
                return;
            };
            hub.release_watch(&caller);
            let item = match outcome.map(|waited| waited.end) {
                Ok(WaitEnd::Pattern(found)) => AgentNotification::pattern_matched(&info, &found),
                Err(error) => AgentNotification::watch_failed(&info, &error.to_string()),
                Ok(
                    WaitEnd::Exit
                    | WaitEnd::Ready
                    | WaitEnd::NotReady(_)
                    | WaitEnd::Output
                    | WaitEnd::Idle
                    | WaitEnd::Prompt(_)
                    | WaitEnd::TimedOut
                    | WaitEnd::Nothing,
                ) => return,
            };
            hub.push_to(&caller, item);
        });
        Ok(())
    }
}
