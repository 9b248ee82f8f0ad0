//! What happens to executions, and what that means for the questions about them.

use ostler_model::{Caller, ExecutionId, Owner};

use super::open_prompt::OpenPrompt;
use super::question::Question;
use super::service::{InteractionService, now};
use super::state::{CancelReason, Interaction};
use crate::execution::ExecutionHandle;
use crate::hooks::ExecutionObserver;
use crate::info::Prompt;

impl InteractionService {
    /// The prompt that a command's own open question is about.
    pub(crate) fn open_prompt(&self, execution: ExecutionId) -> Option<OpenPrompt> {
        self.table.lock().open_prompt(execution)
    }

    /// The open question of a command itself, for those who see it.
    pub(crate) fn question_of(
        &self,
        caller: &Caller,
        execution: ExecutionId,
    ) -> Option<Interaction> {
        let table = self.table.lock();
        let mut open = table.iter().filter(|it| it.is_open());
        open.find(|it| it.question.is_prompt_of(execution) && caller.can_access(&it.owner))
            .cloned()
    }

    /// The command does not wait at this prompt any more. A question about a later one stays.
    pub(crate) fn prompt_gone(&self, execution: ExecutionId, gone: OpenPrompt) {
        self.update(|table| table.end_prompt(execution, gone));
    }

    /// The command waited at this prompt: a question about an earlier one is over.
    pub(crate) fn other_prompt_found(&self, execution: ExecutionId, prompt: &Prompt) {
        let found = Question::from_prompt(prompt, execution);
        let is_later = |it: &Interaction| {
            let place = it.question.prompt_place;
            place.is_some_and(|it| it.is_after(prompt.place))
        };
        let is_other = |it: &Interaction| {
            it.question.is_prompt_of(execution)
                && !it.question.is_same_prompt(&found)
                && !is_later(it)
        };
        self.cancel_where(is_other, &CancelReason::PromptGone);
    }
}

impl ExecutionObserver for InteractionService {
    fn ended(&self, id: ExecutionId) {
        let of_it = |it: &Interaction| it.question.execution == Some(id);
        self.cancel_where(of_it, &CancelReason::ExecutionEnded);
        self.table.lock().forget_prompts(id);
    }

    fn spawn_failed(&self, id: ExecutionId) {
        let approval = self.table.lock().approval_of(id);
        if let Some(approval) = approval {
            self.release_approval(approval);
        }
    }

    fn removed(&self, id: ExecutionId) {
        self.table.lock().forget_prompts(id);
    }

    fn prompt_found(&self, entry: &ExecutionHandle, prompt: &Prompt) {
        let is_held = self.leases.holder(entry.id).is_some();
        let number = entry.live.borrow().state.prompts;
        // Who types in the terminal sees the prompt there.
        if !prompt.is_question || is_held {
            return self.other_prompt_found(entry.id, prompt);
        }
        let place = Some(prompt.place);
        if self.table.lock().knows_prompt(entry.id, number, place) {
            return;
        }
        let question = Question {
            directory: Some(entry.spec.cwd.as_path().to_owned()),
            ..Question::from_prompt(prompt, entry.id)
        };
        let owner = Owner::clone(&entry.owner());
        self.update(|book| book.open_for_prompt(now(), owner, question, number));
        let (is_finished, is_answered) = {
            let live = entry.live.borrow();
            (live.state.is_finished(), live.state.prompt.is_none())
        };
        // What happened meanwhile may have been handled before the question existed.
        if is_finished {
            self.ended(entry.id);
        } else if is_answered {
            self.input_arrived(entry.id);
        }
    }

    fn input_arrived(&self, id: ExecutionId) {
        let of_it = |it: &Interaction| it.question.execution == Some(id);
        self.cancel_where(of_it, &CancelReason::AnsweredElsewhere);
    }

    fn owner_changed(&self, id: ExecutionId, owner: &Owner) {
        self.update(|book| book.transfer_to(id, owner));
    }

    fn session_ended(&self, caller: &Caller) {
        let theirs = |it: &Interaction| {
            it.owner.session == caller.owner.session && caller.can_access(&it.owner)
        };
        self.cancel_where(theirs, &CancelReason::SessionEnded);
    }
}
