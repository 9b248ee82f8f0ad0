//! Continues a program that stopped itself in a terminal, as editors do at Ctrl-Z: there is no
//! shell that would continue it.

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::AttemptRunner;

/// Whether a leader stopped by this signal is continued. SIGTTIN and SIGTTOU mean that it may not
/// use its terminal now, and would stop it again at once; a stop by request lasts until a request
/// continues it.
const fn is_continued(signal: i32, is_requested: bool) -> bool {
    !is_requested && !matches!(signal, libc::SIGTTIN | libc::SIGTTOU)
}

impl AttemptRunner<'_> {
    /// Continues the leader's process group where the leader of a terminal has stopped itself,
    /// as tmux does.
    pub(super) fn continue_stopped(&self) {
        if self.streams.terminal().is_none() || self.tree.status().is_some() {
            return;
        }
        let leader = i32::try_from(self.tree.pid()).ok().and_then(Pid::from_raw);
        let Some(leader) = leader else {
            return;
        };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let Ok(Some(stopped)) = waitid(WaitId::Pid(leader), options) else {
            return;
        };
        let is_requested = self.stop_ordered || self.freeze_state.is_some();
        if stopped
            .stopping_signal()
            .is_some_and(|signal| is_continued(signal, is_requested))
        {
            self.tree.signal_group(libc::SIGCONT);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stops_itself_goes_on_and_what_was_ordered_stays() {
        assert!(is_continued(libc::SIGTSTP, false));
        assert!(is_continued(libc::SIGSTOP, false));
        assert!(!is_continued(libc::SIGSTOP, true));
        assert!(!is_continued(libc::SIGTTIN, false));
        assert!(!is_continued(libc::SIGTTOU, false));
    }
}
