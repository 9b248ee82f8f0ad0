//! The effects that a supervisor requests.

use std::time::Duration;

use ostler_model::ControlCommand;
use ostler_model::EventRecord;

/// One thing to do. The driver carries effects out in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorEffect {
    /// Have the place give birth to this attempt; answered by `Spawned` or `SpawnFailed`.
    Spawn {
        /// From 1.
        attempt: u32,
    },
    /// Hand this order over.
    Send(ControlCommand),
    /// Write this down; it is already part of the supervisor's state.
    Record(EventRecord),
    /// Answer with `Timer` when so much time has passed, whatever the wall clock says meanwhile;
    /// replaces the timer of the same name.
    SetTimer {
        /// Which.
        timer: Timer,
        /// From now.
        after: Duration,
    },
    /// The timer is not wanted any more.
    ClearTimer(Timer),
}

/// Deadlines of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// The next attempt of a service.
    Backoff,
}
