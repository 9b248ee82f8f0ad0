//! The methods for questions to a person.

use ostler_engine::interaction::InteractionWatch;
use ostler_engine::{Error, Interaction, InteractionOutcome, Question};
use ostler_model::Caller;
use tokio::sync::watch;

use super::Engine;

impl Engine {
    /// Checks what [`Engine::open_interaction`] does not, because it reads files: whether the
    /// default is an answer, and the workspace a directory.
    ///
    /// # Errors
    /// [`Error::Interaction`] for an invalid question; [`Error::NotFound`] for an execution the
    /// caller does not see.
    pub async fn check_question(&self, caller: &Caller, question: &Question) -> Result<(), Error> {
        self.0.check_question(caller, question).await
    }

    /// Opens an interaction. The interaction of an execution belongs to the execution's owner, and
    /// the execution's end cancels it.
    ///
    /// # Errors
    /// [`Error::Interaction`] for an invalid question and beyond
    /// [`MAX_OPEN`](crate::interaction::table::MAX_OPEN); [`Error::NotFound`] for an execution the caller does
    /// not see.
    pub fn open_interaction(
        &self,
        caller: &Caller,
        question: Question,
    ) -> Result<Interaction, Error> {
        self.0.open_interaction(caller, question)
    }

    /// The interactions that the caller sees, newest first; recently ended ones are included unless
    /// `open_only`.
    #[must_use]
    pub fn interactions(&self, caller: &Caller, open_only: bool) -> Vec<Interaction> {
        self.0.interactions(caller, open_only)
    }

    /// One interaction by id.
    ///
    /// # Errors
    /// [`Error::Interaction`] when it is unknown or of another owner.
    pub fn interaction(&self, caller: &Caller, id: &str) -> Result<Interaction, Error> {
        self.0.interaction(caller, id)
    }

    /// Waits until it is answered, cancelled or timed out. Cancel safe, and changes nothing.
    ///
    /// # Errors
    /// As [`Engine::interaction`].
    pub async fn wait_for_answer(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<InteractionOutcome, Error> {
        self.0.wait_for_answer(caller, id).await
    }

    /// Answers an interaction; an approval of a start only for callers that see all of their
    /// principal's. The value must be valid for the kind; for an execution it is written as one
    /// line of input, and this returns when it was accepted. Dropping the future takes nothing
    /// back.
    ///
    /// # Errors
    /// [`Error::Interaction`]: unknown, no longer open, an invalid answer, or not accepted by the
    /// command.
    pub async fn answer_interaction(
        &self,
        caller: &Caller,
        id: &str,
        value: String,
    ) -> Result<Interaction, Error> {
        self.0.answer_interaction(caller, id, value).await
    }

    /// Cancels an interaction; `reason` is reported to the waiters for its answer. Where an answer
    /// is being delivered, waits for the result first.
    ///
    /// # Errors
    /// [`Error::Interaction`]: unknown, or no longer open.
    pub async fn cancel_interaction(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<String>,
    ) -> Result<Interaction, Error> {
        self.0.cancel_interaction(caller, id, reason).await
    }

    /// Follows the interactions that the caller sees.
    #[must_use]
    pub fn watch_interactions(&self, caller: &Caller) -> InteractionWatch {
        self.0.watch_interactions(caller)
    }

    /// Counts the changes of interactions: a new value means that [`Engine::interactions`] may
    /// return something else now.
    #[must_use]
    pub fn interaction_changes(&self) -> watch::Receiver<u64> {
        self.0.interaction_changes()
    }
}
