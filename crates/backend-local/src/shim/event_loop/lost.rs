//! Reports what the isolation of the tree has lost.

use ostler_model::ProcessEvent;

use super::AttemptRunner;

impl AttemptRunner<'_> {
    /// Reports what was lost since the last call, after the start.
    pub(super) fn check_lost(&mut self) {
        if let Some(lost) = self.tree.take_lost() {
            self.send_started();
            self.lost_capabilities.push(lost.clone());
            self.daemon.send(&ProcessEvent::Degraded { lost }, None);
        }
    }

    /// Reports everything lost again, to a daemon that connected later.
    pub(super) fn resend_lost(&mut self) {
        for lost in self.lost_capabilities.clone() {
            self.daemon.send(&ProcessEvent::Degraded { lost }, None);
        }
    }
}
