//! Continues a program that stopped itself in a terminal, as editors do at Ctrl-Z: there is no
//! shell that would continue it.

use super::AttemptRunner;

impl AttemptRunner<'_> {
    /// Continues the leader's process group where the leader of a terminal has stopped itself,
    /// as tmux does.
    pub(super) fn continue_stopped(&self) {
        if self.streams.terminal().is_some() {
            let is_requested = self.stop_ordered || self.freeze_state.is_some();
            self.tree.continue_stopped(is_requested);
        }
    }

    /// Records a requested signal that stops or continues the tree.
    pub(super) const fn track_signal(&mut self, signal: i32) {
        match signal {
            libc::SIGSTOP | libc::SIGTSTP => self.stop_ordered = true,
            libc::SIGCONT => self.stop_ordered = false,
            _ => {}
        }
    }
}
