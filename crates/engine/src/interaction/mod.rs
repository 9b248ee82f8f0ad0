//! Questions to whoever is in charge, and their answers (B7): one registry for every face.
//!
//! A question is asked by a tool, or for a command that waits for an answer; it is answered
//! once, cancelled or runs out of time. [`table`] decides, purely; the desk carries it out:
//! one timer for the earliest deadline, one task per answer that goes into a command.

mod api;
#[cfg(test)]
mod approval_tests;
mod error;
mod question;
mod service;
mod state;
pub mod table;
#[cfg(test)]
mod tests;
mod validate;
#[cfg(test)]
mod walk_tests;

pub use crate::admission::approval::{Approval, CONSENT_S};
pub use crate::prompt::{OPTIONS, QuestionKind};
pub use error::InteractionError;
pub use question::{
    ANSWER_BYTES, INTERACTION_TIMEOUT_MS, LONGEST_TIMEOUT_MS, MESSAGE_BYTES, OPTION_BYTES, Question,
};
pub(crate) use service::InteractionService;
pub use state::{CancelReason, Interaction, InteractionId, InteractionOutcome, InteractionState};
