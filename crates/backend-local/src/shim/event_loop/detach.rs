//! The leader has ended, and processes that it left continue the attempt.

use ostler_model::ProcessEvent;

use super::AttemptRunner;

impl AttemptRunner<'_> {
    /// Lets the processes that the leader left continue the attempt.
    pub(super) fn detach(&mut self) {
        self.detached = true;
        self.tree.detach();
        self.send_started();
        self.send_detached();
    }

    /// Reports it, also to a daemon that connected later.
    pub(super) fn send_detached(&mut self) {
        if let (true, Some(status)) = (self.detached, self.tree.status()) {
            self.daemon.send(&ProcessEvent::Detached { status }, None);
        }
    }
}
