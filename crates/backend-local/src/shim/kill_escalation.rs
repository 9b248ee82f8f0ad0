//! The schedule of ending a tree: a pure state machine; time is an input.
//!
//! ```text
//! living --ask--> [hung up -->] asked --grace--> killing --give up--> over, with survivors
//!    \--leader's exit--> lingering --LINGER--> asked
//!                             \--LINGER, kept--> keeping --ask--> asked
//! ```
//! From every state an empty tree whose leader has ended is over.

use std::time::{Duration, Instant};

use ostler_backend::{KillReason, Timeouts};
use ostler_model::OrphanPolicy;

/// How long leftovers may take to end by themselves, in milliseconds.
pub(crate) const LINGER_MS: u64 = 100;
/// The same once no process has the output pipes open.
pub(crate) const LINGER_SILENT_MS: u64 = 20;
/// The longest grace for leftovers of a command that ended by itself, in milliseconds: its result
/// waits for them.
pub(crate) const LEFTOVER_GRACE_MS: u64 = 500;
/// How long a tree has between SIGHUP and SIGTERM, in milliseconds; half the grace where that is
/// less. A program that cleans up on both signals must not be interrupted in the first handler by
/// the second.
pub(crate) const HANG_UP_MS: u64 = 500;
/// The interval of rounds of SIGKILL to remaining processes, in milliseconds.
pub(crate) const SWEEP_MS: u64 = 5;
/// How long killing may take before survivors are reported, in milliseconds.
pub(crate) const GIVE_UP_MS: u64 = 5_000;

/// The state of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscalationPhase {
    /// The leader runs and no end was requested.
    Running,
    /// The leader has ended; remaining processes may end by themselves until this time.
    Lingering(Instant),
    /// The leader has ended; remaining processes continue the attempt.
    Detached,
    /// SIGHUP was sent, as if the terminal were gone.
    HungUp {
        /// When SIGTERM is sent.
        term_at: Instant,
        /// When SIGKILL is sent.
        kill_at: Instant,
    },
    /// SIGTERM was sent; SIGKILL follows at this time.
    Terminating(Instant),
    /// SIGKILL was sent.
    Killing {
        /// The next round.
        sweep_at: Instant,
        /// When survivors are reported.
        give_up_at: Instant,
    },
}

/// What the caller must do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillAction {
    /// Kill nothing: the remaining processes continue the attempt.
    Detach,
    /// Send SIGHUP to the processes a terminal's hang-up reaches, and SIGTERM to all others.
    HangUp,
    /// Send SIGTERM to all.
    Terminate,
    /// Send SIGKILL to all.
    Kill,
    /// Report the remaining processes and stop.
    GiveUp,
}

/// The state of one tree's end.
#[derive(Debug)]
pub(crate) struct KillEscalation {
    phase: EscalationPhase,
    reason: Option<KillReason>,
    grace: Duration,
    terminal: bool,
    /// Whether processes that the leader leaves are kept.
    keep_orphans: bool,
}

impl KillEscalation {
    /// The state of a live tree, with a terminal or without.
    pub(crate) const fn new(timeouts: &Timeouts, terminal: bool) -> Self {
        Self {
            phase: EscalationPhase::Running,
            reason: None,
            grace: timeouts.grace,
            terminal,
            keep_orphans: false,
        }
    }

    /// Whether the attempt continues, with its leader or without, and no end was requested.
    pub(crate) const fn is_running(&self) -> bool {
        match self.phase {
            EscalationPhase::Running | EscalationPhase::Detached => true,
            EscalationPhase::Lingering(_) => self.keep_orphans,
            EscalationPhase::HungUp { .. }
            | EscalationPhase::Terminating(_)
            | EscalationPhase::Killing { .. } => false,
        }
    }

    /// Why the kill escalation began while the attempt ran, if it did.
    pub(crate) const fn reason(&self) -> Option<KillReason> {
        self.reason
    }

    /// Starts the escalation by request or timeout. A repetition can only shorten the grace.
    pub(crate) fn terminate(
        &mut self,
        reason: KillReason,
        grace: Duration,
        now: Instant,
    ) -> Option<KillAction> {
        if self.is_running() {
            self.reason = Some(reason);
        }
        let kill_at = now + grace;
        match self.phase {
            EscalationPhase::Killing { .. } => None,
            _ if grace.is_zero() => Some(self.kill(now)),
            EscalationPhase::Terminating(earlier) => {
                self.phase = EscalationPhase::Terminating(earlier.min(kill_at));
                None
            }
            EscalationPhase::HungUp {
                term_at,
                kill_at: earlier,
            } => {
                self.phase = EscalationPhase::HungUp {
                    term_at: term_at.min(now + hang_up_grace(grace)),
                    kill_at: earlier.min(kill_at),
                };
                None
            }
            EscalationPhase::Running if self.terminal => {
                self.phase = EscalationPhase::HungUp {
                    term_at: now + hang_up_grace(grace),
                    kill_at,
                };
                Some(KillAction::HangUp)
            }
            EscalationPhase::Running
            | EscalationPhase::Lingering(_)
            | EscalationPhase::Detached => {
                self.phase = EscalationPhase::Terminating(kill_at);
                Some(KillAction::Terminate)
            }
        }
    }

    /// Handles the end of a leader that left processes.
    pub(crate) fn on_leader_exit(&mut self, orphan_policy: OrphanPolicy, now: Instant) {
        if self.phase == EscalationPhase::Running {
            self.phase = EscalationPhase::Lingering(now + Duration::from_millis(LINGER_MS));
            self.keep_orphans = orphan_policy == OrphanPolicy::Keep;
        }
    }

    /// Handles that no process has the output pipes open: lingering processes can write no more.
    pub(crate) fn on_output_closed(&mut self, now: Instant) {
        if let EscalationPhase::Lingering(until) = self.phase {
            let soon = now + Duration::from_millis(LINGER_SILENT_MS);
            self.phase = EscalationPhase::Lingering(until.min(soon));
        }
    }

    /// When [`poll`](Self::poll) has an action.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.phase {
            EscalationPhase::Running | EscalationPhase::Detached => None,
            EscalationPhase::Lingering(at)
            | EscalationPhase::Terminating(at)
            | EscalationPhase::HungUp { term_at: at, .. }
            | EscalationPhase::Killing { sweep_at: at, .. } => Some(at),
        }
    }

    /// The action that is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<KillAction> {
        if self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        match self.phase {
            EscalationPhase::Running | EscalationPhase::Detached => None,
            EscalationPhase::Lingering(_) if self.keep_orphans => {
                self.phase = EscalationPhase::Detached;
                Some(KillAction::Detach)
            }
            EscalationPhase::Lingering(_) => {
                let grace = self.grace.min(Duration::from_millis(LEFTOVER_GRACE_MS));
                if grace.is_zero() {
                    return Some(self.kill(now));
                }
                self.phase = EscalationPhase::Terminating(now + grace);
                Some(KillAction::Terminate)
            }
            EscalationPhase::HungUp { kill_at, .. } => {
                self.phase = EscalationPhase::Terminating(kill_at);
                Some(KillAction::Terminate)
            }
            EscalationPhase::Terminating(_) => Some(self.kill(now)),
            EscalationPhase::Killing { give_up_at, .. } if now >= give_up_at => {
                Some(KillAction::GiveUp)
            }
            EscalationPhase::Killing { give_up_at, .. } => {
                self.phase = EscalationPhase::Killing {
                    sweep_at: now + Duration::from_millis(SWEEP_MS),
                    give_up_at,
                };
                Some(KillAction::Kill)
            }
        }
    }

    fn kill(&mut self, now: Instant) -> KillAction {
        self.phase = EscalationPhase::Killing {
            sweep_at: now + Duration::from_millis(SWEEP_MS),
            give_up_at: now + Duration::from_millis(GIVE_UP_MS),
        };
        KillAction::Kill
    }
}

/// How long the tree has between SIGHUP and SIGTERM.
fn hang_up_grace(grace: Duration) -> Duration {
    Duration::from_millis(HANG_UP_MS).min(grace / 2)
}

#[cfg(test)]
mod tests {
    use ostler_model::TimeoutKind;

    use super::*;

    fn descent(grace_ms: u64) -> (KillEscalation, Instant) {
        descent_of(grace_ms, false)
    }

    fn descent_of(grace_ms: u64, terminal: bool) -> (KillEscalation, Instant) {
        let clocks = Timeouts {
            wall: None,
            idle: None,
            grace: Duration::from_millis(grace_ms),
        };
        (KillEscalation::new(&clocks, terminal), Instant::now())
    }

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn terminated_then_killed_after_the_grace() {
        let (mut descent, t0) = descent(5_000);
        let wall = KillReason::Timeout(TimeoutKind::Wall);
        assert_eq!(
            descent.terminate(wall, ms(5_000), t0),
            Some(KillAction::Terminate)
        );
        assert_eq!(descent.poll(t0 + ms(4_999)), None);
        assert_eq!(descent.poll(t0 + ms(5_000)), Some(KillAction::Kill));
        assert_eq!(
            descent.poll(t0 + ms(5_000 + SWEEP_MS)),
            Some(KillAction::Kill)
        );
        assert_eq!(
            descent.poll(t0 + ms(5_000 + GIVE_UP_MS)),
            Some(KillAction::GiveUp)
        );
        assert_eq!(descent.reason(), Some(wall));
    }

    #[test]
    fn a_second_asking_shortens_but_never_lengthens() {
        let (mut descent, t0) = descent(5_000);
        descent.terminate(KillReason::Requested, ms(1_000), t0);
        assert_eq!(
            descent.terminate(KillReason::Requested, ms(9_000), t0),
            None
        );
        assert_eq!(descent.deadline(), Some(t0 + ms(1_000)));
        assert_eq!(
            descent.terminate(KillReason::Requested, ms(0), t0),
            Some(KillAction::Kill)
        );
    }

    #[test]
    fn leftovers_of_a_natural_end_have_no_escalation() {
        let (mut descent, t0) = descent(5_000);
        descent.on_leader_exit(OrphanPolicy::Kill, t0);
        assert_eq!(
            descent.poll(t0 + ms(LINGER_MS)),
            Some(KillAction::Terminate)
        );
        assert_eq!(descent.reason(), None);
        let kill_at = t0 + ms(LINGER_MS + LEFTOVER_GRACE_MS);
        assert_eq!(descent.poll(kill_at), Some(KillAction::Kill));
    }

    #[test]
    fn kept_leftovers_have_no_deadline_until_a_stop() {
        let (mut descent, t0) = descent(5_000);
        descent.on_leader_exit(OrphanPolicy::Keep, t0);
        assert!(descent.is_running());
        assert_eq!(descent.poll(t0 + ms(LINGER_MS)), Some(KillAction::Detach));
        assert_eq!(descent.deadline(), None);
        assert!(descent.is_running());
        assert_eq!(
            descent.terminate(KillReason::Requested, ms(10), t0),
            Some(KillAction::Terminate)
        );
        assert!(!descent.is_running());
        assert_eq!(descent.reason(), Some(KillReason::Requested));
    }

    #[test]
    fn who_is_stopped_before_it_is_kept_is_not_kept() {
        let (mut descent, t0) = descent(5_000);
        descent.on_leader_exit(OrphanPolicy::Keep, t0);
        assert_eq!(
            descent.terminate(KillReason::Requested, ms(10), t0),
            Some(KillAction::Terminate)
        );
        assert_eq!(descent.reason(), Some(KillReason::Requested));
        assert_eq!(descent.poll(t0 + ms(10)), Some(KillAction::Kill));
    }

    #[test]
    fn silence_shortens_the_lingering() {
        let (mut descent, t0) = descent(5_000);
        descent.on_leader_exit(OrphanPolicy::Kill, t0);
        descent.on_output_closed(t0);
        assert_eq!(descent.deadline(), Some(t0 + ms(LINGER_SILENT_MS)));
    }

    #[test]
    fn a_terminal_gets_a_hang_up_before_the_term_signal() {
        let (mut descent, t0) = descent_of(5_000, true);
        assert_eq!(
            descent.terminate(KillReason::Requested, ms(5_000), t0),
            Some(KillAction::HangUp)
        );
        assert_eq!(descent.poll(t0 + ms(HANG_UP_MS - 1)), None);
        assert_eq!(
            descent.poll(t0 + ms(HANG_UP_MS)),
            Some(KillAction::Terminate)
        );
        assert_eq!(descent.poll(t0 + ms(4_999)), None);
        assert_eq!(descent.poll(t0 + ms(5_000)), Some(KillAction::Kill));
        assert_eq!(descent.reason(), Some(KillReason::Requested));
    }

    #[test]
    fn a_hang_up_takes_half_of_a_short_grace() {
        let (mut descent, t0) = descent_of(5_000, true);
        descent.terminate(KillReason::Requested, ms(5_000), t0);
        assert_eq!(descent.terminate(KillReason::Requested, ms(100), t0), None);
        assert_eq!(descent.poll(t0 + ms(50)), Some(KillAction::Terminate));
        assert_eq!(descent.poll(t0 + ms(100)), Some(KillAction::Kill));
        let (mut descent, t0) = descent_of(0, true);
        assert_eq!(
            descent.terminate(KillReason::Requested, ms(0), t0),
            Some(KillAction::Kill)
        );
    }

    #[test]
    fn leftovers_of_a_terminal_get_term_at_once() {
        let (mut descent, t0) = descent_of(5_000, true);
        descent.on_leader_exit(OrphanPolicy::Kill, t0);
        assert_eq!(
            descent.poll(t0 + ms(LINGER_MS)),
            Some(KillAction::Terminate)
        );
    }
}
