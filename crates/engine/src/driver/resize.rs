//! A terminal's new size, with its place in the output.

use ostler_model::TermSize;
use ostler_model::spec::Io;
use ostler_process::{ControlError, Order};

use crate::supervisor::Input;

use super::run::Driver;

impl Driver {
    /// Hands a size over. What is printed from now on counts as printed on a terminal of this
    /// size, so the journal's end is looked at first; a size that is the same is no event.
    pub(super) async fn resize(&mut self, size: TermSize) -> Result<(), ControlError> {
        let former = self.size();
        let changes = former.is_some_and(|former| former != size);
        if !changes {
            return self.pass(Order::Resize(size)).await;
        }
        self.look_at_journal().await;
        let end = self.entry.marks.borrow().end;
        self.entry.turns.resize(end, size);
        let sent = self.pass(Order::Resize(size)).await;
        match (&sent, former) {
            (Ok(()), _) => self.feed(Input::Resized { size }).await,
            (Err(_), Some(former)) => self.entry.turns.resize(end, former),
            (Err(_), None) => {}
        }
        sent
    }

    /// The terminal's size now.
    fn size(&self) -> Option<TermSize> {
        match self.entry.spec.io {
            Io::Pty { size } => Some(self.supervisor.state().size.unwrap_or(size)),
            Io::Pipes { .. } => None,
        }
    }
}
