//! Waiting for a line on an agent's behalf, while it does something else.

use std::sync::Arc;

use ostler_engine::{WaitEnd, WaitFor};
use ostler_journal::Pattern;
use ostler_model::{Caller, Cursor};

use super::board::News;
use super::item::Item;
use crate::error::Failure;

impl News {
    /// A line of `id` that matches is news for this caller's session, once; from a position
    /// on. The watch ends with the match or the execution.
    ///
    /// # Errors
    /// When the execution is unknown or foreign, or the session watches too much already.
    pub(in crate::mcp) fn watch(
        &self,
        caller: &Caller,
        id: &str,
        (pattern, after): (Pattern, Cursor),
    ) -> Result<(), Failure> {
        let info = self.engine.info(caller, id)?;
        self.board.begin_watch(caller)?;
        let (board, engine) = (Arc::clone(&self.board), self.engine.clone());
        let (caller, closing) = (caller.clone(), self.closing.clone());
        self.tasks.spawn(async move {
            let (id, until) = (info.id.to_string(), WaitFor::PatternAfter(pattern, after));
            let waiting = engine.wait(&caller, &id, &until, None);
            let Some(found) = closing.run_until_cancelled(waiting).await else {
                return;
            };
            board.end_watch(&caller.owner);
            let item = match found.map(|waited| waited.why) {
                Ok(WaitEnd::Pattern(found)) => Item::printed(&info, &found),
                Err(error) => Item::unwatched(&info, &error.to_string()),
                Ok(
                    WaitEnd::Exit
                    | WaitEnd::Ready
                    | WaitEnd::NotReady(_)
                    | WaitEnd::Output
                    | WaitEnd::Idle
                    | WaitEnd::Prompt(_)
                    | WaitEnd::AtMost
                    | WaitEnd::Nothing,
                ) => return,
            };
            board.add(&caller.owner, item);
        });
        Ok(())
    }
}
