//! Interactions: questions to the operator and their answers, in one registry for every API
//! surface.
//!
//! A question is posted by a client, or for a command that waits for input; it is answered once,
//! cancelled or times out. [`table`] decides, purely; the service performs the effects: one timer
//! for the earliest deadline, one task per answer that is written to a command, one entry in the
//! ledger for each question that is opened or ends. A file names the open ones, so that those of an
//! engine that was killed are ended by the next.

#[cfg(test)]
mod approval_tests;
mod changes;
mod delivery;
#[cfg(test)]
mod end_tests;
mod files;
mod observer;
mod open_prompt;
mod question;
mod record;
mod service;
mod state;
mod store;
pub mod table;
#[cfg(test)]
mod tests;
mod validate;
#[cfg(test)]
mod walk_tests;
mod watch;

pub use crate::admission::approval::{Approval, CONSENT_S};
pub use crate::error::{InteractionBound, InteractionError};
pub use crate::interaction_id::InteractionId;
pub use crate::prompt::{OPTIONS, QuestionKind};
pub use changes::{InteractionChanges, InteractionTransition};
pub use question::{
    ANSWER_BYTES, INTERACTION_TIMEOUT_MS, LONGEST_TIMEOUT_MS, MESSAGE_BYTES, OPTION_BYTES, Question,
};
pub(crate) use service::InteractionService;
pub use state::{CancelReason, Interaction, InteractionOutcome, InteractionState};
pub use watch::{InteractionNews, InteractionWatch};
