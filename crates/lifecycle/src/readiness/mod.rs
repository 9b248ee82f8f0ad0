//! Whether a service is ready and healthy: a pure state machine; time is an input.
//!
//! [`Readiness`] belongs to one attempt. It takes each observation as [`ReadinessInput`] and
//! returns [`ReadinessEvent`]s; [`Readiness::watch_plan`] says what to observe next. No clock, no
//! I/O.

mod event;
mod health;
mod input;
mod limits;
mod line_splitter;
mod listeners;
mod log_patterns;
mod main_port;
mod messages;
mod output;
mod ports;
mod printed_address;
mod probe_state;
mod probe_target;
mod protocols;
mod ready_evidence;
mod resume;
mod scan_schedule;
mod startup;
mod startup_probe;
mod state_machine;
#[cfg(test)]
mod tests;

pub use event::{ReadinessEvent, WatchPlan};
pub use input::{ListeningSocket, NotifyState, ProbeOutcome, ProbeRequest, ReadinessInput};
pub use log_patterns::{failure_line, is_port_conflict};
pub use state_machine::Readiness;
