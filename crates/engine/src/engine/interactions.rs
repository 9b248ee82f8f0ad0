//! The facade's methods for interactions.

use std::sync::Arc;

use ostler_model::{Caller, Scope};
use tokio::sync::watch;

use super::Engine;
use crate::admission::arguments;
use crate::error::{Error, InteractionError};
use crate::interaction::{
    CancelReason, Interaction, InteractionOutcome, InteractionWatch, Question,
};
use crate::lease::LeaseHolder;

impl Engine {
    /// Checks what [`Engine::open_interaction`] does not, because it reads files: whether the
    /// default is an answer, and the workspace a directory.
    ///
    /// # Errors
    /// [`Error::Interaction`] for an invalid question; [`Error::NotFound`] for an execution the
    /// caller does not see.
    pub async fn check_question(&self, caller: &Caller, question: &Question) -> Result<(), Error> {
        self.interactions.check(&self.inner, caller, question).await
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
        self.interactions.open(&self.inner, caller, question)
    }

    /// The interactions that the caller sees, newest first; recently ended ones are included unless
    /// `open_only`.
    #[must_use]
    pub fn interactions(&self, caller: &Caller, open_only: bool) -> Vec<Interaction> {
        self.interactions.list(caller, open_only)
    }

    /// As [`Engine::interactions`] for somebody who looks at them: commands that may ask soon are
    /// checked more often for some seconds.
    #[must_use]
    pub fn poll_interactions(&self, caller: &Caller, open_only: bool) -> Vec<Interaction> {
        self.prompts.sample_often(&self.inner, caller);
        self.interactions(caller, open_only)
    }

    /// Who alone may type into the execution of an interaction now, and so answer it; none where
    /// everybody may who sees it.
    #[must_use]
    pub fn interaction_holder(&self, interaction: &Interaction) -> Option<LeaseHolder> {
        let execution = interaction.question.execution?;
        self.leases.holder(execution)
    }

    /// One interaction by id.
    ///
    /// # Errors
    /// [`Error::Interaction`] when it is unknown or of another owner.
    pub fn interaction(&self, caller: &Caller, id: &str) -> Result<Interaction, Error> {
        self.interactions.find(caller, id)
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
        let id = self.interactions.find(caller, id)?.id;
        let mut changes = self.interactions.changes();
        loop {
            changes.mark_unchanged();
            if let Some(answer) = self.interactions.outcome(id)? {
                return Ok(answer);
            }
            // The sender is owned by the engine, so this cannot fail.
            let _changed = changes.changed().await.is_ok();
        }
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
        let interaction = self.interactions.find(caller, id)?;
        if interaction.question.approval.is_some() && caller.scope == Scope::Session {
            let (id, path) = (interaction.id, self.inner.settings.approval_path);
            return Err(InteractionError::OnlyPerson { id, path }.into());
        }
        let by = caller.owner.principal.clone();
        self.interactions
            .answer(&self.inner, &interaction, by, value)
            .await?;
        // Its owner may have changed meanwhile, and many others may have ended since.
        Ok(self.interactions.find(caller, id).unwrap_or(interaction))
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
        let length = reason.as_ref().map_or(0, String::len);
        arguments::check_length("the reason", length, arguments::REASON_BYTES)?;
        let id = self.interactions.find(caller, id)?.id;
        let by = caller.owner.principal.clone();
        let reason = CancelReason::Requested { by, reason };
        Ok(self.interactions.cancel(id, reason).await?)
    }

    /// Follows the interactions that the caller sees.
    #[must_use]
    pub fn watch_interactions(&self, caller: &Caller) -> InteractionWatch {
        let (watcher, inner) = (Arc::clone(&self.prompts), Arc::clone(&self.inner));
        let look = {
            let caller = caller.clone();
            Box::new(move || watcher.sample_often(&inner, &caller))
        };
        InteractionWatch::new(Arc::clone(&self.interactions), caller.clone(), look)
    }

    /// Counts the changes of interactions: a new value means that [`Engine::interactions`] may
    /// return something else now.
    #[must_use]
    pub fn interaction_changes(&self) -> watch::Receiver<u64> {
        self.interactions.changes()
    }
}
