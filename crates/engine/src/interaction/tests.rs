//! The interaction service over a fake backend: answers, ownership, timeouts, ends. Time is paused
//! and advances only when every task is idle.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::ControlCommand;
use ostler_model::termination::WaitStatus;
use ostler_model::{Caller, ErrorCode, Event, ExecutionId, Owner, Principal, Scope, SessionName};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{
    CancelReason, INTERACTION_TIMEOUT_MS, InteractionError, InteractionOutcome, InteractionState,
    Question, QuestionKind,
};
use crate::{Engine, Error, Settings, StartRequest, StdinRequest};

pub(super) struct InteractionFixture {
    pub(super) _state: TempDir,
    pub(super) place: Arc<FakeBackend>,
    pub(super) engine: Engine,
}

impl InteractionFixture {
    pub(super) async fn new() -> Self {
        Self::with(|place| place).await
    }

    pub(super) async fn with(change: impl FnOnce(FakeBackend) -> FakeBackend) -> Self {
        let state = TempDir::new().expect("a directory");
        let place = Arc::new(change(FakeBackend::new(state.path(), |_| {
            SpawnBehavior::Run
        })));
        let engine = Engine::open(Settings::new(state.path()), Arc::clone(&place) as _)
            .await
            .expect("an engine");
        Self {
            _state: state,
            place,
            engine,
        }
    }

    pub(super) async fn start(&self, who: &Caller) -> ExecutionId {
        let mut request = StartRequest::argv(["true"], "/");
        request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        request.stdin = StdinRequest::Open;
        self.engine.start(who, request).await.expect("started").id
    }

    /// The input that was written to an execution.
    pub(super) fn typed(&self, id: ExecutionId) -> Vec<String> {
        let orders = self.place.commands(id).into_iter();
        let lines = orders.filter_map(|order| match order {
            ControlCommand::Input(bytes) => Some(String::from_utf8(bytes).expect("text")),
            ControlCommand::Stop { .. }
            | ControlCommand::Signal(_)
            | ControlCommand::CloseInput
            | ControlCommand::Resize(_)
            | ControlCommand::Watch(_)
            | ControlCommand::Retain(_)
            | ControlCommand::SecretInput(_)
            | ControlCommand::InputOnce { .. }
            | ControlCommand::Freeze(_) => None,
        });
        lines.collect()
    }

    pub(super) fn events(&self, who: &Caller, id: ExecutionId) -> Vec<Event> {
        let records = self.engine.events(who, &id.to_string()).expect("readable");
        records.into_iter().map(|record| record.event).collect()
    }
}

pub(super) fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: Some("p".to_owned()),
            session: Some(SessionName(session.to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    }
}

pub(super) fn ask(bound: Option<ExecutionId>) -> Question {
    let mut question = Question::new(QuestionKind::Confirmation, "Continue?");
    question.execution = bound;
    question
}

pub(super) fn interaction_error(error: Error) -> InteractionError {
    assert_eq!(error.code(), ErrorCode::Interaction, "{error}");
    let Error::Interaction(error) = error else {
        panic!("{error}");
    };
    error
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_in_as_a_line_and_is_on_record_without_its_text() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let interaction_id = fixture
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked");
    assert_eq!(
        (
            interaction_id.id.to_string().as_str(),
            &interaction_id.state
        ),
        ("i1", &InteractionState::Open)
    );
    let waiting = fixture.engine.wait_for_answer(&me, "i1");
    let answering = fixture
        .engine
        .answer_interaction(&me, "i1", "yes".to_owned());
    let (told_answer, answered) = tokio::join!(waiting, answering);
    assert_eq!(
        told_answer.expect("known"),
        InteractionOutcome::Answered("yes".to_owned())
    );
    let answered = answered.expect("accepted");
    assert!(
        matches!(answered.state, InteractionState::Answered { by, .. } if by == Principal::unix(0))
    );
    assert_eq!(fixture.typed(id), ["yes\n"]);
    let events = fixture.events(&me, id);
    let input = Event::Input {
        by: Principal::unix(0),
        len: 4,
    };
    let answer = Event::PromptAnswered {
        by: Principal::unix(0),
    };
    assert_eq!(&events[events.len() - 2..], [input, answer]);
    // A second answer is refused.
    let again = fixture
        .engine
        .answer_interaction(&me, "i1", "no".to_owned())
        .await;
    let again = interaction_error(again.expect_err("it was answered"));
    assert!(
        matches!(
            again,
            InteractionError::Closed {
                state: InteractionState::Answered { .. },
                ..
            }
        ),
        "{again}"
    );
    assert_eq!(fixture.typed(id), ["yes\n"]);
    assert!(fixture.engine.interactions(&me, true).is_empty());
    assert_eq!(fixture.engine.interactions(&me, false).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_execution() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let mut question = Question::new(QuestionKind::ChoiceSelection, "Which?");
    question.options = vec!["red".to_owned(), "green".to_owned()];
    let id = fixture
        .engine
        .open_interaction(&me, question)
        .expect("asked")
        .id
        .to_string();
    let refused = fixture
        .engine
        .answer_interaction(&me, &id, "blue".to_owned())
        .await;
    let refused = interaction_error(refused.expect_err("not among them")).to_string();
    assert_eq!(
        refused,
        "'blue' is no answer to a choice_selection: one of red | green"
    );
    fixture
        .engine
        .answer_interaction(&me, &id, "red".to_owned())
        .await
        .expect("accepted");
    let answer = fixture
        .engine
        .wait_for_answer(&me, &id)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Answered("red".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn unknown_and_foreign_ones_are_reported_alike() {
    let fixture = InteractionFixture::new().await;
    let (me, other) = (caller("one"), caller("two"));
    let mine = fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    let mut stranger = me.clone();
    stranger.owner.principal = Principal::unix(7);
    stranger.scope = Scope::Principal;
    for (who, id) in [
        (&other, mine.as_str()),
        (&stranger, &mine),
        (&me, "i9"),
        (&me, "x"),
        (&me, ""),
    ] {
        let yes = || "yes".to_owned();
        let errors = [
            fixture.engine.interaction(who, id).expect_err("hidden"),
            fixture
                .engine
                .wait_for_answer(who, id)
                .await
                .expect_err("hidden"),
            fixture
                .engine
                .answer_interaction(who, id, yes())
                .await
                .expect_err("hidden"),
            fixture
                .engine
                .cancel_interaction(who, id, None)
                .await
                .expect_err("hidden"),
        ];
        for error in errors {
            assert_eq!(error.to_string(), "Interaction not found or access denied");
            assert_eq!(interaction_error(error), InteractionError::NotFound);
        }
    }
    assert!(fixture.engine.interactions(&other, false).is_empty());
    assert!(fixture.engine.interactions(&stranger, false).is_empty());
    // Nor can a question be opened about an execution of another owner.
    let id = fixture.start(&me).await;
    let error = fixture
        .engine
        .open_interaction(&other, ask(Some(id)))
        .expect_err("hidden");
    assert!(matches!(error, Error::NotFound), "{error}");
    // The command line sees all of its principal's.
    let mut person = other;
    person.scope = Scope::Principal;
    person.owner.session = None;
    assert_eq!(fixture.engine.interactions(&person, true).len(), 1);
    fixture
        .engine
        .answer_interaction(&person, &mine, "y".to_owned())
        .await
        .expect("accepted");
}

#[tokio::test(start_paused = true)]
async fn time_runs_out_after_five_minutes() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let begin = Instant::now();
    let id = fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    let answer = fixture
        .engine
        .wait_for_answer(&me, &id)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::TimedOut);
    let waited = begin.elapsed();
    let expected = Duration::from_millis(INTERACTION_TIMEOUT_MS);
    assert!(
        waited >= expected && waited < expected + Duration::from_secs(1),
        "{waited:?}"
    );
    let late = fixture
        .engine
        .answer_interaction(&me, &id, "yes".to_owned())
        .await;
    let late = interaction_error(late.expect_err("too late"));
    assert!(
        matches!(
            late,
            InteractionError::Closed {
                state: InteractionState::TimedOut {
                    took_default: false
                },
                ..
            }
        ),
        "{late}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_default_is_taken_and_typed_in() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let mut bound = ask(Some(id));
    bound.default = Some("n".to_owned());
    bound.timeout = Duration::from_millis(1);
    let mut free = bound.clone();
    free.execution = None;
    for question in [bound, free] {
        let interaction_id = fixture
            .engine
            .open_interaction(&me, question)
            .expect("asked")
            .id
            .to_string();
        let answer = fixture
            .engine
            .wait_for_answer(&me, &interaction_id)
            .await
            .expect("known");
        assert_eq!(answer, InteractionOutcome::Default("n".to_owned()));
        let state = fixture
            .engine
            .interaction(&me, &interaction_id)
            .expect("known")
            .state;
        assert_eq!(state, InteractionState::TimedOut { took_default: true });
    }
    assert_eq!(fixture.typed(id), ["n\n"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_nothing_leaves_the_question_open() {
    let fixture = InteractionFixture::with(|place| place.with_input_limit(0)).await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let mut question = ask(Some(id));
    question.default = Some("yes".to_owned());
    let interaction_id = fixture
        .engine
        .open_interaction(&me, question)
        .expect("asked")
        .id
        .to_string();
    let refused = fixture
        .engine
        .answer_interaction(&me, &interaction_id, "yes".to_owned())
        .await;
    let refused = interaction_error(refused.expect_err("none of it"));
    assert_eq!(
        refused,
        InteractionError::PartiallyWritten { taken: 0, given: 4 }
    );
    assert!(
        fixture
            .engine
            .interaction(&me, &interaction_id)
            .expect("known")
            .is_open()
    );
    // The default does not get in either.
    let answer = fixture
        .engine
        .wait_for_answer(&me, &interaction_id)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::TimedOut);
    let answered = |event: &Event| matches!(event, Event::PromptAnswered { .. });
    assert!(!fixture.events(&me, id).iter().any(answered));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_little_by_little_gets_all_of_it() {
    let fixture = InteractionFixture::with(|place| place.with_input_limit(2)).await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let interaction_id = fixture
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked")
        .id;
    let answering = fixture
        .engine
        .answer_interaction(&me, &interaction_id.to_string(), "yes".to_owned())
        .await;
    answering.expect("accepted");
    assert_eq!(fixture.typed(id), ["yes\n", "s\n"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_execution_cancels_what_it_asks() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let (id, other) = (fixture.start(&me).await, fixture.start(&me).await);
    let interaction_id = fixture
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked")
        .id
        .to_string();
    let left = fixture
        .engine
        .open_interaction(&me, ask(Some(other)))
        .expect("asked")
        .id;
    let waiting = fixture.engine.wait_for_answer(&me, &interaction_id);
    let ending = async { fixture.place.end(id, WaitStatus::Code(0)) };
    let (answer, _) = tokio::join!(waiting, ending);
    assert_eq!(
        answer.expect("known"),
        InteractionOutcome::Cancelled(CancelReason::ExecutionEnded)
    );
    let open = fixture.engine.interactions(&me, true);
    assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [left]);
    let late = fixture
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect_err("it has ended");
    assert_eq!(interaction_error(late), InteractionError::Ended { id });
}

#[tokio::test(start_paused = true)]
async fn input_by_another_way_answers_and_keys_alone_do_not() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let interaction_id = fixture
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked")
        .id
        .to_string();
    let write = async |bytes: &[u8]| {
        let taken = fixture
            .engine
            .write(&me, &id.to_string(), bytes.to_vec())
            .await;
        taken.expect("accepted");
    };
    write(b"ye").await;
    assert!(
        fixture
            .engine
            .interaction(&me, &interaction_id)
            .expect("known")
            .is_open()
    );
    write(b"s\n").await;
    let answer = fixture
        .engine
        .wait_for_answer(&me, &interaction_id)
        .await
        .expect("known");
    assert_eq!(
        answer,
        InteractionOutcome::Cancelled(CancelReason::AnsweredElsewhere)
    );
}
