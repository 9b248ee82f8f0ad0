//! Which prompt of a command its question is about.

use ostler_model::ExecutionId;

use super::InteractionId;
use super::state::CancelReason;
use super::table::InteractionTable;
use crate::prompt::PromptPlace;

/// The prompt that the open question of a command is about. It tells that prompt from one that the
/// command comes to later, and that the same question may then be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenPrompt {
    question: InteractionId,
    /// The number of the prompt among those of its execution, and its place.
    last: Option<(u32, Option<PromptPlace>)>,
    place: Option<PromptPlace>,
}

impl InteractionTable {
    /// Whether a question was opened for this prompt of an execution.
    #[must_use]
    pub fn knows_prompt(
        &self,
        execution: ExecutionId,
        number: u32,
        place: Option<PromptPlace>,
    ) -> bool {
        let known = self.prompts.get(&execution);
        known.is_some_and(|(last, at)| *last == number && is_same_place(*at, place))
    }

    /// Forgets the prompts of an execution that has ended.
    pub fn forget_prompts(&mut self, execution: ExecutionId) {
        self.prompts.remove(&execution);
    }

    /// The prompt that the open question of an execution is about.
    pub(super) fn open_prompt(&self, execution: ExecutionId) -> Option<OpenPrompt> {
        let mut open = self.iter().filter(|it| it.is_open());
        let found = open.find(|it| it.question.is_prompt_of(execution))?;
        Some(OpenPrompt {
            question: found.id,
            last: self.prompts.get(&execution).copied(),
            place: found.question.prompt_place,
        })
    }

    /// Cancels the question of an execution, where it is still about this prompt.
    pub(super) fn end_prompt(&mut self, execution: ExecutionId, gone: OpenPrompt) {
        if self.open_prompt(execution) == Some(gone) {
            self.cancel_where(|it| it.id == gone.question, &CancelReason::PromptGone);
        }
    }
}

/// Whether two prompts stand at one place, as far as their places are known.
fn is_same_place(one: Option<PromptPlace>, other: Option<PromptPlace>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ostler_model::{Owner, Principal, RequestChannel};
    use tempfile::TempDir;

    use super::super::service::{InteractionService, now};
    use super::*;
    use crate::info::Prompt;
    use crate::interaction::{InteractionState, Question, QuestionKind};
    use crate::lease::WriterLeases;

    struct Questions {
        service: InteractionService,
        execution: ExecutionId,
        _state: TempDir,
    }

    impl Questions {
        fn new() -> Self {
            let state = TempDir::new().expect("a directory");
            let leases = Arc::new(WriterLeases::default());
            Self {
                service: InteractionService::new(leases, state.path()),
                execution: ExecutionId::mint(),
                _state: state,
            }
        }

        /// The question for the prompt of this number that ends at this offset.
        fn open(&self, number: u32, end: u64) -> Option<InteractionId> {
            let owner = Owner {
                principal: Principal::unix(0),
                project: None,
                session: None,
                task: None,
                channel: RequestChannel::Local,
            };
            let question = Question::from_prompt(&prompt(end), self.execution);
            let open = |table: &mut InteractionTable| {
                table.open_for_prompt(now(), owner, question, number)
            };
            self.service.update(open).map(|it| it.id)
        }

        fn snapshot(&self) -> OpenPrompt {
            let open = self.service.open_prompt(self.execution);
            open.expect("a question is open")
        }

        fn is_open(&self, id: InteractionId) -> bool {
            let table = self.service.table.lock();
            table.get(id).expect("known").state == InteractionState::Open
        }
    }

    fn prompt(end: u64) -> Prompt {
        Prompt {
            text: "Continue? [y/N] ".to_owned(),
            secret: false,
            kind: QuestionKind::Confirmation,
            options: Vec::new(),
            default: None,
            pid: 7,
            evidence: Vec::new(),
            is_question: true,
            place: PromptPlace::at_end(end),
        }
    }

    #[test]
    fn a_prompt_that_is_gone_ends_its_question() {
        let questions = Questions::new();
        let id = questions.open(1, 10).expect("asked");
        let seen = questions.snapshot();
        questions.service.prompt_gone(questions.execution, seen);
        assert!(!questions.is_open(id));
    }

    #[test]
    fn a_question_that_was_opened_meanwhile_stays_open() {
        let questions = Questions::new();
        let first = questions.open(1, 10).expect("asked");
        let seen = questions.snapshot();
        let second = questions.open(2, 20).expect("asked");
        questions.service.prompt_gone(questions.execution, seen);
        assert!(!questions.is_open(first) && questions.is_open(second));
        // Until that one is gone.
        let seen = questions.snapshot();
        questions.service.prompt_gone(questions.execution, seen);
        assert!(!questions.is_open(second));
    }

    #[test]
    fn a_prompt_that_was_asked_again_without_output_stays_open() {
        let questions = Questions::new();
        let id = questions.open(1, 10).expect("asked");
        let seen = questions.snapshot();
        assert_eq!(questions.open(2, 10), None, "the same question");
        questions.service.prompt_gone(questions.execution, seen);
        assert!(questions.is_open(id));
    }

    #[test]
    fn a_prompt_that_was_found_before_ends_no_later_question() {
        let questions = Questions::new();
        let earlier = questions.open(1, 10).expect("asked");
        let of_shell = prompt(15);
        questions
            .service
            .other_prompt_found(questions.execution, &of_shell);
        assert!(!questions.is_open(earlier));
        let later = questions.open(2, 20).expect("asked");
        questions
            .service
            .other_prompt_found(questions.execution, &of_shell);
        assert!(questions.is_open(later));
    }
}
