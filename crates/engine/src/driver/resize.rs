//! Records a terminal's new size with its position in the output.

use ostler_backend::{ControlCommand, ControlError};
use ostler_model::TermSize;
use ostler_model::spec::Io;

use crate::supervisor::SupervisorInput;

use super::event_loop::Driver;

impl Driver {
    /// Sends a size to the shim. Output from now on counts as printed on a terminal of this size,
    /// so the journal's end is read first; an unchanged size is not an event.
    pub(super) async fn resize(&mut self, size: TermSize) -> Result<(), ControlError> {
        let previous = self.size();
        let changes = previous.is_some_and(|former| former != size);
        if !changes {
            return self.forward(ControlCommand::Resize(size)).await;
        }
        self.refresh_journal_end().await;
        let end = self.execution.journal_end.borrow().end;
        self.execution.timeline.resize(end, size);
        let sent = self.forward(ControlCommand::Resize(size)).await;
        match (&sent, previous) {
            (Ok(()), _) => self.step(SupervisorInput::Resized { size }).await,
            (Err(_), Some(former)) => self.execution.timeline.resize(end, former),
            (Err(_), None) => {}
        }
        sent
    }

    /// The terminal's size now.
    fn size(&self) -> Option<TermSize> {
        match self.execution.spec.io {
            Io::Pty { size } => Some(self.supervisor.state().size.unwrap_or(size)),
            Io::Pipes { .. } => None,
        }
    }
}
