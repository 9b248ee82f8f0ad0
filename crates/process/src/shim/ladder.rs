//! When what happens to a tree that must end: pure, told the time.
//!
//! ```text
//! living --ask--> [hung up -->] asked --grace--> killing --give up--> over, with survivors
//!    \--leader's exit--> lingering --LINGER--> asked
//!                             \--LINGER, kept--> keeping --ask--> asked
//! ```
//! From every state an empty tree whose leader has ended is over.

use std::time::{Duration, Instant};

use ostler_model::Leftovers;

use crate::place::{Clocks, Ladder};

/// How long leftovers may take to end by themselves, in milliseconds.
pub(crate) const LINGER_MS: u64 = 100;
/// The same once nobody holds the output pipes any more.
pub(crate) const LINGER_SILENT_MS: u64 = 20;
/// The most grace leftovers of a command that ended by itself are given, in milliseconds: its
/// result waits for them.
pub(crate) const LEFTOVER_GRACE_MS: u64 = 500;
/// How long what was hung up has until it is asked as everything else is, in milliseconds; half
/// the grace where that is less. A program that says farewell on both signals is not to be
/// interrupted in the first one by the second.
pub(crate) const HANG_UP_MS: u64 = 500;
/// Between two rounds of killing what is still there, in milliseconds.
pub(crate) const SWEEP_MS: u64 = 5;
/// How long killing may take before survivors are reported, in milliseconds.
pub(crate) const GIVE_UP_MS: u64 = 5_000;

/// Where a tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The leader runs and nobody wants it ended.
    Living,
    /// The leader has ended; what it left may end by itself until then.
    Lingering(Instant),
    /// The leader has ended; what it left goes on in its place.
    Keeping,
    /// Its terminal is gone, as far as it can tell; asked, then killed.
    HungUp {
        /// When it is asked.
        ask_at: Instant,
        /// When it is killed.
        kill_at: Instant,
    },
    /// Politely asked; killed then.
    Asked(Instant),
    /// Being killed.
    Killing {
        /// The next round.
        sweep_at: Instant,
        /// When survivors are reported.
        give_up_at: Instant,
    },
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Nobody is to be ended: what is left goes on in the leader's place.
    Detach,
    /// Send HUP to whom a terminal's hang-up reaches, and TERM to everything else.
    HangUp,
    /// Send TERM to everything.
    Ask,
    /// Send KILL to everything.
    Kill,
    /// Report what is left and go.
    GiveUp,
}

/// The state of one tree's end.
#[derive(Debug)]
pub(crate) struct Descent {
    stage: Stage,
    why: Option<Ladder>,
    grace: Duration,
    terminal: bool,
    /// What the leader left is kept.
    keeps: bool,
}

impl Descent {
    /// A tree that lives, on a terminal or not.
    pub(crate) const fn new(clocks: &Clocks, terminal: bool) -> Self {
        Self {
            stage: Stage::Living,
            why: None,
            grace: clocks.grace,
            terminal,
            keeps: false,
        }
    }

    /// Whether it goes on, with its leader or without, and nobody wants it ended.
    pub(crate) const fn goes_on(&self) -> bool {
        match self.stage {
            Stage::Living | Stage::Keeping => true,
            Stage::Lingering(_) => self.keeps,
            Stage::HungUp { .. } | Stage::Asked(_) | Stage::Killing { .. } => false,
        }
    }

    /// Why the ladder began while it went on, if it did.
    pub(crate) const fn why(&self) -> Option<Ladder> {
        self.why
    }

    /// Somebody or a clock wants it ended. A second asking can only shorten the grace.
    pub(crate) fn ask(&mut self, why: Ladder, grace: Duration, now: Instant) -> Option<Act> {
        if self.goes_on() {
            self.why = Some(why);
        }
        let kill_at = now + grace;
        match self.stage {
            Stage::Killing { .. } => None,
            _ if grace.is_zero() => Some(self.kill(now)),
            Stage::Asked(before) => {
                self.stage = Stage::Asked(before.min(kill_at));
                None
            }
            Stage::HungUp {
                ask_at,
                kill_at: before,
            } => {
                self.stage = Stage::HungUp {
                    ask_at: ask_at.min(now + hang_up(grace)),
                    kill_at: before.min(kill_at),
                };
                None
            }
            Stage::Living if self.terminal => {
                self.stage = Stage::HungUp {
                    ask_at: now + hang_up(grace),
                    kill_at,
                };
                Some(Act::HangUp)
            }
            Stage::Living | Stage::Lingering(_) | Stage::Keeping => {
                self.stage = Stage::Asked(kill_at);
                Some(Act::Ask)
            }
        }
    }

    /// The leader has ended and left something.
    pub(crate) fn leader_ended(&mut self, leftovers: Leftovers, now: Instant) {
        if self.stage == Stage::Living {
            self.stage = Stage::Lingering(now + Duration::from_millis(LINGER_MS));
            self.keeps = leftovers == Leftovers::Keep;
        }
    }

    /// Nobody holds the output pipes any more: what lingers has nothing left to say.
    pub(crate) fn silent(&mut self, now: Instant) {
        if let Stage::Lingering(until) = self.stage {
            let soon = now + Duration::from_millis(LINGER_SILENT_MS);
            self.stage = Stage::Lingering(until.min(soon));
        }
    }

    /// When [`due`](Self::due) has something to say.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Living | Stage::Keeping => None,
            Stage::Lingering(at)
            | Stage::Asked(at)
            | Stage::HungUp { ask_at: at, .. }
            | Stage::Killing { sweep_at: at, .. } => Some(at),
        }
    }

    /// What the time demands.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Act> {
        if self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        match self.stage {
            Stage::Living | Stage::Keeping => None,
            Stage::Lingering(_) if self.keeps => {
                self.stage = Stage::Keeping;
                Some(Act::Detach)
            }
            Stage::Lingering(_) => {
                let grace = self.grace.min(Duration::from_millis(LEFTOVER_GRACE_MS));
                if grace.is_zero() {
                    return Some(self.kill(now));
                }
                self.stage = Stage::Asked(now + grace);
                Some(Act::Ask)
            }
            Stage::HungUp { kill_at, .. } => {
                self.stage = Stage::Asked(kill_at);
                Some(Act::Ask)
            }
            Stage::Asked(_) => Some(self.kill(now)),
            Stage::Killing { give_up_at, .. } if now >= give_up_at => Some(Act::GiveUp),
            Stage::Killing { give_up_at, .. } => {
                self.stage = Stage::Killing {
                    sweep_at: now + Duration::from_millis(SWEEP_MS),
                    give_up_at,
                };
                Some(Act::Kill)
            }
        }
    }

    fn kill(&mut self, now: Instant) -> Act {
        self.stage = Stage::Killing {
            sweep_at: now + Duration::from_millis(SWEEP_MS),
            give_up_at: now + Duration::from_millis(GIVE_UP_MS),
        };
        Act::Kill
    }
}

/// How long a hang-up is left to work.
fn hang_up(grace: Duration) -> Duration {
    Duration::from_millis(HANG_UP_MS).min(grace / 2)
}

#[cfg(test)]
mod tests {
    use ostler_model::TimeoutKind;

    use super::*;

    fn descent(grace_ms: u64) -> (Descent, Instant) {
        descent_of(grace_ms, false)
    }

    fn descent_of(grace_ms: u64, terminal: bool) -> (Descent, Instant) {
        let clocks = Clocks {
            wall: None,
            idle: None,
            grace: Duration::from_millis(grace_ms),
        };
        (Descent::new(&clocks, terminal), Instant::now())
    }

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn asked_then_killed_after_the_grace() {
        let (mut descent, t0) = descent(5_000);
        let wall = Ladder::Clock(TimeoutKind::Wall);
        assert_eq!(descent.ask(wall, ms(5_000), t0), Some(Act::Ask));
        assert_eq!(descent.due(t0 + ms(4_999)), None);
        assert_eq!(descent.due(t0 + ms(5_000)), Some(Act::Kill));
        assert_eq!(descent.due(t0 + ms(5_000 + SWEEP_MS)), Some(Act::Kill));
        assert_eq!(descent.due(t0 + ms(5_000 + GIVE_UP_MS)), Some(Act::GiveUp));
        assert_eq!(descent.why(), Some(wall));
    }

    #[test]
    fn a_second_asking_shortens_but_never_lengthens() {
        let (mut descent, t0) = descent(5_000);
        descent.ask(Ladder::Ordered, ms(1_000), t0);
        assert_eq!(descent.ask(Ladder::Ordered, ms(9_000), t0), None);
        assert_eq!(descent.deadline(), Some(t0 + ms(1_000)));
        assert_eq!(descent.ask(Ladder::Ordered, ms(0), t0), Some(Act::Kill));
    }

    #[test]
    fn leftovers_of_a_natural_end_have_no_ladder() {
        let (mut descent, t0) = descent(5_000);
        descent.leader_ended(Leftovers::Kill, t0);
        assert_eq!(descent.due(t0 + ms(LINGER_MS)), Some(Act::Ask));
        assert_eq!(descent.why(), None);
        let kill_at = t0 + ms(LINGER_MS + LEFTOVER_GRACE_MS);
        assert_eq!(descent.due(kill_at), Some(Act::Kill));
    }

    #[test]
    fn kept_leftovers_have_no_deadline_until_asked() {
        let (mut descent, t0) = descent(5_000);
        descent.leader_ended(Leftovers::Keep, t0);
        assert!(descent.goes_on());
        assert_eq!(descent.due(t0 + ms(LINGER_MS)), Some(Act::Detach));
        assert_eq!(descent.deadline(), None);
        assert!(descent.goes_on());
        assert_eq!(descent.ask(Ladder::Ordered, ms(10), t0), Some(Act::Ask));
        assert!(!descent.goes_on());
        assert_eq!(descent.why(), Some(Ladder::Ordered));
    }

    #[test]
    fn who_is_stopped_before_it_is_kept_is_not_kept() {
        let (mut descent, t0) = descent(5_000);
        descent.leader_ended(Leftovers::Keep, t0);
        assert_eq!(descent.ask(Ladder::Ordered, ms(10), t0), Some(Act::Ask));
        assert_eq!(descent.why(), Some(Ladder::Ordered));
        assert_eq!(descent.due(t0 + ms(10)), Some(Act::Kill));
    }

    #[test]
    fn silence_shortens_the_lingering() {
        let (mut descent, t0) = descent(5_000);
        descent.leader_ended(Leftovers::Kill, t0);
        descent.silent(t0);
        assert_eq!(descent.deadline(), Some(t0 + ms(LINGER_SILENT_MS)));
    }

    #[test]
    fn a_terminal_is_hung_up_before_it_is_asked() {
        let (mut descent, t0) = descent_of(5_000, true);
        assert_eq!(
            descent.ask(Ladder::Ordered, ms(5_000), t0),
            Some(Act::HangUp)
        );
        assert_eq!(descent.due(t0 + ms(HANG_UP_MS - 1)), None);
        assert_eq!(descent.due(t0 + ms(HANG_UP_MS)), Some(Act::Ask));
        assert_eq!(descent.due(t0 + ms(4_999)), None);
        assert_eq!(descent.due(t0 + ms(5_000)), Some(Act::Kill));
        assert_eq!(descent.why(), Some(Ladder::Ordered));
    }

    #[test]
    fn a_hang_up_takes_half_of_a_short_grace() {
        let (mut descent, t0) = descent_of(5_000, true);
        descent.ask(Ladder::Ordered, ms(5_000), t0);
        assert_eq!(descent.ask(Ladder::Ordered, ms(100), t0), None);
        assert_eq!(descent.due(t0 + ms(50)), Some(Act::Ask));
        assert_eq!(descent.due(t0 + ms(100)), Some(Act::Kill));
        let (mut descent, t0) = descent_of(0, true);
        assert_eq!(descent.ask(Ladder::Ordered, ms(0), t0), Some(Act::Kill));
    }

    #[test]
    fn leftovers_of_a_terminal_are_asked_at_once() {
        let (mut descent, t0) = descent_of(5_000, true);
        descent.leader_ended(Leftovers::Kill, t0);
        assert_eq!(descent.due(t0 + ms(LINGER_MS)), Some(Act::Ask));
    }
}
