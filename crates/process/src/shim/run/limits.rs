//! Limits that the tree reached, by what the kernel counted and how the leader ended.

use ostler_model::ending::WaitStatus;
use ostler_model::{Limit, Signal};

use super::Run;
use crate::proto::FromShim;

/// What a shell adds to the number of the signal that ended a command, for its own status.
const SHELL_SIGNAL_BASE: i32 = 128;

impl Run<'_> {
    /// Tells of limits that were reached since this was called last.
    pub(super) fn look_at_limits(&mut self) {
        let news = match &mut self.shim.slot {
            Some(slot) => slot.hits(),
            None => Vec::new(),
        };
        for limit in news {
            self.hit(limit);
        }
    }

    /// Once per limit.
    fn hit(&mut self, limit: Limit) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
            self.link.send(&FromShim::LimitHit { limit }, None);
        }
    }

    /// Every limit that was told of, once more, to a daemon that was not there.
    pub(super) fn tell_limits_again(&mut self) {
        for &limit in &self.limits_hit {
            self.link.send(&FromShim::LimitHit { limit }, None);
        }
    }

    /// Takes in what the end shows; whether a limit on memory ended it. A process of
    /// the tree that was killed for its memory is no end of the tree.
    pub(super) fn judge_end(&mut self) -> bool {
        self.look_at_limits();
        let slot = self.shim.slot.as_ref();
        let oom_kills = slot.map_or(0, ostler_sandbox::cgroup::Slot::oom_kills);
        let out_of_memory = oom_kills > self.oom_before;
        if out_of_memory {
            self.hit(Limit::Memory);
        }
        let status = self.tree.end();
        let limits: ostler_model::Limits = self.plan.limits.into();
        if limits.file_bytes.is_some() && shows(status, libc::SIGXFSZ) {
            self.hit(Limit::FileSize);
        }
        out_of_memory && self.descent.why().is_none() && shows(status, Signal::KILL.number())
    }
}

/// Whether a signal ended the leader, or a command whose status a shell passed on.
fn shows(status: Option<WaitStatus>, signal: i32) -> bool {
    match status {
        Some(WaitStatus::Signal(by)) => by.number() == signal,
        Some(WaitStatus::Code(code)) => code == SHELL_SIGNAL_BASE + signal,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_passes_signals_on() {
        assert!(shows(Some(WaitStatus::Signal(Signal::KILL)), 9));
        assert!(shows(Some(WaitStatus::Code(137)), 9));
        assert!(!shows(Some(WaitStatus::Code(9)), 9));
        assert!(!shows(None, 9));
    }
}
