//! What a terminal answers by itself, where no person's terminal does it.
//!
//! Programs ask where the cursor stands or what their terminal can do, and some wait long for
//! the answer. Whoever holds the lease has a terminal of their own, which answers; the screen
//! answers otherwise.

use std::sync::Arc;

use ostler_process::Question;
use ostler_terminal::answers;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::driver::{Ask, Purpose, Write};
use crate::entry::Entry;

/// Types the answer to a question in that ended at an offset. It is nobody's input and no
/// event.
pub(crate) async fn answer(core: Arc<Core>, entry: Arc<Entry>, (question, end): (Question, u64)) {
    if entry.leases.holder().is_some() {
        return;
    }
    let bytes = match question {
        Question::Status => answers::STATUS.to_vec(),
        Question::Attributes => answers::ATTRIBUTES.to_vec(),
        Question::Cursor => {
            // Where it stood when it was asked for: programs go on before they read the answer.
            let seen = core.look_back_at_screen(&entry, end, |screen| screen.view().cursor);
            match seen.await {
                Ok(Some(cursor)) => answers::cursor(cursor),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(id = %entry.id, %error, "its cursor is not told");
                    return;
                }
            }
        }
    };
    let (answer, taken) = oneshot::channel();
    let write = Write {
        by: entry.owner().principal.clone(),
        bytes,
        close: false,
        purpose: Purpose::Report,
        answer,
    };
    if entry.ask(Ask::Write(write)).await.is_ok() {
        // It may have ended meanwhile; then nobody waits for the answer.
        let _over = taken.await.is_err();
    }
}
