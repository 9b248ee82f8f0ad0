//! Detects limits the tree reached, from the kernel's counters and how the leader ended.

use ostler_model::termination::WaitStatus;
use ostler_model::{LimitKind, ProcessEvent, Signal};

use super::AttemptRunner;
use crate::shim::container_tree::ContainerTree;

/// The offset a shell adds to a signal number for the exit status of a command that the signal
/// ended.
const SHELL_SIGNAL_BASE: i32 = 128;

impl AttemptRunner<'_> {
    /// Reports limits that were reached since the last call.
    pub(super) fn check_limits(&mut self) {
        let limits = match &mut self.shim.slot {
            Some(slot) => slot.take_reached_limits(),
            None => Vec::new(),
        };
        for limit in limits {
            self.report_limit(limit);
        }
    }

    /// Reports a limit, once.
    fn report_limit(&mut self, limit: LimitKind) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
            self.daemon.send(&ProcessEvent::LimitHit { limit }, None);
        }
    }

    /// Reports every limit again, to a daemon that connected later.
    pub(super) fn resend_limits(&mut self) {
        for &limit in &self.limits_hit {
            self.daemon.send(&ProcessEvent::LimitHit { limit }, None);
        }
    }

    /// Evaluates how the leader ended; true if a memory limit ended it. A process of the tree that
    /// was killed for its memory does not end the tree.
    pub(super) fn was_out_of_memory(&mut self) -> bool {
        self.check_limits();
        let slot = self.shim.slot.as_ref();
        let oom_kills = slot.map_or(0, ostler_sandbox::cgroup::CgroupSlot::oom_kills);
        let container = self.tree.container().and_then(ContainerTree::end);
        let out_of_memory =
            oom_kills > self.oom_before || container.is_some_and(|end| end.oom_kills > 0);
        for limit in container
            .map(|end| end.limits_hit.clone())
            .unwrap_or_default()
        {
            self.report_limit(limit);
        }
        if out_of_memory {
            self.report_limit(LimitKind::Memory);
        }
        let status = self.tree.final_status();
        if self.plan.limits.file_bytes.is_some() && was_ended_by(status, libc::SIGXFSZ) {
            self.report_limit(LimitKind::FileSize);
        }
        out_of_memory
            && self.escalation.reason().is_none()
            && was_ended_by(status, Signal::KILL.number())
    }
}

/// Whether a signal ended the leader, or a command whose status a shell returned.
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
