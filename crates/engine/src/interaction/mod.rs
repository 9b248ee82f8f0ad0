//! Questions to whoever is in charge, and their answers (B7): one registry for every face.
//!
//! A question is asked by a tool, or for a command that waits for an answer; it is answered
//! once, cancelled or runs out of time. [`book`] decides, purely; the desk carries it out:
//! one timer for the earliest deadline, one task per answer that goes into a command.

mod approval;
#[cfg(test)]
mod approval_tests;
pub mod book;
mod desk;
mod error;
mod facade;
mod question;
mod state;
#[cfg(test)]
mod tests;
mod validate;
#[cfg(test)]
mod walk_tests;

pub use approval::{Approval, CONSENT_S};
pub(crate) use approval::{AskedStart, Consent, Spend};
pub(crate) use desk::Desk;
pub use error::InteractionError;
pub use question::{
    ANSWER_BYTES, INTERACTION_TIMEOUT_MS, Kind, LONGEST_TIMEOUT_MS, MESSAGE_BYTES, OPTION_BYTES,
    OPTIONS, Question,
};
pub use state::{Answer, CancelReason, Interaction, InteractionId, State};
