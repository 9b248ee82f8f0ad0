//! Limits that the tree reached, by what the kernel counted and how the leader ended.

use ostler_model::termination::WaitStatus;
use ostler_model::{LimitKind, Signal};

use super::AttemptRunner;
use crate::proto::ShimEvent;

/// What a shell adds to the number of the signal that ended a command, for its own status.
const SHELL_SIGNAL_BASE: i32 = 128;

impl AttemptRunner<'_> {
    /// Tells of limits that were reached since this was called last.
    pub(super) fn check_limits(&mut self) {
        let limits = match &mut self.shim.slot {
            Some(slot) => slot.take_reached_limits(),
            None => Vec::new(),
        };
        for limit in limits {
            self.report_limit(limit);
        }
    }

    /// Once per limit.
    fn report_limit(&mut self, limit: LimitKind) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
            self.daemon.send(&ShimEvent::LimitHit { limit }, None);
        }
    }

    /// Every limit that was told of, once more, to a daemon that was not there.
    pub(super) fn resend_limits(&mut self) {
        for &limit in &self.limits_hit {
            self.daemon.send(&ShimEvent::LimitHit { limit }, None);
        }
    }

    /// Takes in what the end shows; whether a limit on memory ended it. A process of
    /// the tree that was killed for its memory is no end of the tree.
    pub(super) fn was_out_of_memory(&mut self) -> bool {
        self.check_limits();
        let slot = self.shim.slot.as_ref();
        let oom_kills = slot.map_or(0, ostler_sandbox::cgroup::CgroupSlot::oom_kills);
        let out_of_memory = oom_kills > self.oom_before;
        if out_of_memory {
            self.report_limit(LimitKind::Memory);
        }
        let status = self.tree.final_status();
        let limits: ostler_model::Limits = self.plan.limits.into();
        if limits.file_bytes.is_some() && was_ended_by(status, libc::SIGXFSZ) {
            self.report_limit(LimitKind::FileSize);
        }
        out_of_memory
            && self.escalation.reason().is_none()
            && was_ended_by(status, Signal::KILL.number())
    }
}

/// Whether a signal ended the leader, or a command whose status a shell passed on.
fn was_ended_by(status: Option<WaitStatus>, signal: i32) -> bool {
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
        assert!(was_ended_by(Some(WaitStatus::Signal(Signal::KILL)), 9));
        assert!(was_ended_by(Some(WaitStatus::Code(137)), 9));
        assert!(!was_ended_by(Some(WaitStatus::Code(9)), 9));
        assert!(!was_ended_by(None, 9));
    }
}
