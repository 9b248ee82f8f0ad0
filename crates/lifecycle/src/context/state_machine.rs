//! The transitions of a context.

use std::time::Duration;

use ostler_model::Timestamp;

use super::input::{ContextDecision, ContextInput, ContextRefusal};
use super::state::{ContextEnd, ContextState};

/// The lifecycle of one context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextLifecycle {
    state: ContextState,
    idle_timeout: Duration,
}

impl ContextLifecycle {
    /// A context whose directory is about to be created.
    #[must_use]
    pub const fn new(idle_timeout: Duration) -> Self {
        Self {
            state: ContextState::Creating,
            idle_timeout,
        }
    }

    /// A context that an earlier engine created, used by `uses` executions that still run, and
    /// otherwise idle since `since`.
    #[must_use]
    pub const fn adopted(idle_timeout: Duration, uses: u32, since: Timestamp) -> Self {
        Self {
            state: in_use(uses, since),
            idle_timeout,
        }
    }

    /// A context that was ending, or whose creation was interrupted, when an earlier engine died:
    /// the decision is what to do next.
    #[must_use]
    pub fn resumed(idle_timeout: Duration, uses: u32, end: ContextEnd) -> (Self, ContextDecision) {
        let mut lifecycle = Self::new(idle_timeout);
        let decision = match uses {
            0 => ContextDecision::RemoveFiles,
            _ if end == ContextEnd::Requested => ContextDecision::StopUses,
            _ => ContextDecision::Nothing,
        };
        lifecycle.state = ContextState::Ending { end, uses };
        (lifecycle, decision)
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> &ContextState {
        &self.state
    }

    /// When it ends if nothing uses it before; none while it is in use or cannot be used.
    #[must_use]
    pub fn idle_deadline(&self) -> Option<Timestamp> {
        match self.state {
            ContextState::Idle { since } => {
                // A time beyond the calendar never comes.
                since.checked_add(self.idle_timeout).ok()
            }
            ContextState::Creating
            | ContextState::Busy { .. }
            | ContextState::Ending { .. }
            | ContextState::Failed { .. }
            | ContextState::Ended { .. } => None,
        }
    }

    /// Applies one input.
    #[must_use]
    pub fn handle(&mut self, now: Timestamp, input: ContextInput) -> ContextDecision {
        match input {
            ContextInput::Created => self.created(now),
            ContextInput::CreationFailed => self.creation_failed(),
            ContextInput::Enter => self.enter(),
            ContextInput::CheckFailed { problem } => self.check_failed(problem),
            ContextInput::Leave => self.leave(now),
            ContextInput::Tick => self.tick(now),
            ContextInput::Remove { force } => self.remove(force),
            ContextInput::Removed => self.removed(),
            ContextInput::RemovalFailed { problem } => self.removal_failed(problem),
        }
    }

    fn created(&mut self, now: Timestamp) -> ContextDecision {
        if self.state == ContextState::Creating {
            self.state = ContextState::Idle { since: now };
        }
        ContextDecision::Nothing
    }

    fn creation_failed(&mut self) -> ContextDecision {
        if self.state != ContextState::Creating {
            return ContextDecision::Nothing;
        }
        let end = ContextEnd::NotCreated;
        self.state = ContextState::Ended { end };
        ContextDecision::Forget
    }

    fn enter(&mut self) -> ContextDecision {
        let uses = match &self.state {
            ContextState::Idle { .. } => 1,
            ContextState::Busy { uses } => uses.saturating_add(1),
            ContextState::Creating => return ContextDecision::Refuse(ContextRefusal::Creating),
            ContextState::Failed { .. } => return ContextDecision::Refuse(ContextRefusal::Failed),
            ContextState::Ending { .. } | ContextState::Ended { .. } => {
                return ContextDecision::Refuse(ContextRefusal::Ending);
            }
        };
        self.state = ContextState::Busy { uses };
        ContextDecision::Admit
    }

    fn check_failed(&mut self, problem: String) -> ContextDecision {
        let end = ContextEnd::Unhealthy { problem };
        match self.state {
            ContextState::Idle { .. } => self.end(end, 0),
            ContextState::Busy { uses } => self.end(end, uses),
            ContextState::Creating
            | ContextState::Ending { .. }
            | ContextState::Failed { .. }
            | ContextState::Ended { .. } => ContextDecision::Nothing,
        }
    }

    fn leave(&mut self, now: Timestamp) -> ContextDecision {
        match &mut self.state {
            ContextState::Busy { uses } => {
                self.state = in_use(uses.saturating_sub(1), now);
                ContextDecision::Nothing
            }
            ContextState::Ending { uses, .. } if *uses > 0 => {
                *uses -= 1;
                match uses {
                    0 => ContextDecision::RemoveFiles,
                    _ => ContextDecision::Nothing,
                }
            }
            ContextState::Creating
            | ContextState::Idle { .. }
            | ContextState::Ending { .. }
            | ContextState::Failed { .. }
            | ContextState::Ended { .. } => ContextDecision::Nothing,
        }
    }

    fn tick(&mut self, now: Timestamp) -> ContextDecision {
        match self.idle_deadline() {
            Some(deadline) if deadline <= now => self.end(ContextEnd::Idle, 0),
            Some(_) | None => ContextDecision::Nothing,
        }
    }

    fn remove(&mut self, force: bool) -> ContextDecision {
        match &self.state {
            ContextState::Creating => ContextDecision::Refuse(ContextRefusal::Creating),
            ContextState::Idle { .. } | ContextState::Failed { .. } => {
                self.end(ContextEnd::Requested, 0)
            }
            ContextState::Busy { uses } | ContextState::Ending { uses, .. }
                if *uses > 0 && !force =>
            {
                ContextDecision::Refuse(ContextRefusal::InUse)
            }
            ContextState::Busy { uses } => {
                let (end, uses) = (ContextEnd::Requested, *uses);
                self.state = ContextState::Ending { end, uses };
                ContextDecision::StopUses
            }
            ContextState::Ending { uses, .. } if *uses > 0 => ContextDecision::StopUses,
            // The files are being removed, or are gone.
            ContextState::Ending { .. } | ContextState::Ended { .. } => ContextDecision::Nothing,
        }
    }

    fn removed(&mut self) -> ContextDecision {
        match &self.state {
            ContextState::Ending { end, uses: 0 } => {
                let end = end.clone();
                self.state = ContextState::Ended { end };
                ContextDecision::Forget
            }
            ContextState::Creating
            | ContextState::Idle { .. }
            | ContextState::Busy { .. }
            | ContextState::Ending { .. }
            | ContextState::Failed { .. }
            | ContextState::Ended { .. } => ContextDecision::Nothing,
        }
    }

    fn removal_failed(&mut self, problem: String) -> ContextDecision {
        if matches!(self.state, ContextState::Ending { uses: 0, .. }) {
            self.state = ContextState::Failed { problem };
        }
        ContextDecision::Nothing
    }

    fn end(&mut self, end: ContextEnd, uses: u32) -> ContextDecision {
        self.state = ContextState::Ending { end, uses };
        match uses {
            0 => ContextDecision::RemoveFiles,
            _ => ContextDecision::Nothing,
        }
    }
}

const fn in_use(uses: u32, since: Timestamp) -> ContextState {
    match uses {
        0 => ContextState::Idle { since },
        uses => ContextState::Busy { uses },
    }
}
