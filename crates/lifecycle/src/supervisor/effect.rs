//! The effects that a supervisor requests.

use std::time::Duration;

use ostler_model::ControlCommand;
use ostler_model::EventRecord;

/// One effect. The driver performs effects in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorEffect {
    /// Have the backend spawn this attempt; answered by `Spawned` or `SpawnFailed`.
    Spawn {
        /// The attempt's number, from 1.
        attempt: u32,
    },
    /// Send this command to the shim.
    Send(ControlCommand),
    /// Record this event; it is already part of the supervisor's state.
    Record(EventRecord),
    /// Send `Timer` as input after this time, measured by the monotonic clock; replaces the timer
    /// of the same name.
    SetTimer {
        /// The timer.
        timer: Timer,
        /// Measured from now.
        after: Duration,
    },
    /// Cancel the timer.
    ClearTimer(Timer),
}

/// Timers of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// The backoff before the next attempt of a service.
    Backoff,
    /// How long an interrupted command has to end by itself.
    Interrupt,
}
