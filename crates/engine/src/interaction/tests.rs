//! The interaction service over a fake backend: answers, ownership, timeouts, ends. Time is paused
//! and advances only when every task is idle.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::ControlCommand;
use ostler_model::snapshot::ForegroundProcess;
use ostler_model::termination::WaitStatus;
use ostler_model::{
    Caller, ErrorCode, Event, ExecutionId, Owner, Principal, Scope, SessionName, TreeSnapshot,
};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use tempfile::TempDir;
use tokio::time::Instant;

use super::table::MAX_OPEN;
use super::{
    CancelReason, INTERACTION_TIMEOUT_MS, InteractionError, InteractionOutcome, InteractionState,
    Question, QuestionKind,
};
use crate::{Engine, Error, Settings, StartRequest, StdinRequest, WaitEnd, WaitFor};

struct Lab {
    _state: TempDir,
    place: Arc<FakeBackend>,
    engine: Engine,
}

impl Lab {
    async fn new() -> Self {
        Self::with(|place| place).await
    }

    async fn with(change: impl FnOnce(FakeBackend) -> FakeBackend) -> Self {
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

    async fn start(&self, who: &Caller) -> ExecutionId {
        let mut request = StartRequest::argv(["true"], "/");
        request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        request.stdin = StdinRequest::Open;
        self.engine.start(who, request).await.expect("started").id
    }

    /// What was typed into an execution.
    fn typed(&self, id: ExecutionId) -> Vec<String> {
        let orders = self.place.commands(id).into_iter();
        let lines = orders.filter_map(|order| match order {
            ControlCommand::Input(bytes) => Some(String::from_utf8(bytes).expect("text")),
            ControlCommand::Stop { .. }
            | ControlCommand::Signal(_)
            | ControlCommand::CloseInput
            | ControlCommand::Resize(_)
            | ControlCommand::Watch(_)
            | ControlCommand::Retain(_)
            | ControlCommand::InputOnce { .. }
            | ControlCommand::Freeze(_) => None,
        });
        lines.collect()
    }

    fn events(&self, who: &Caller, id: ExecutionId) -> Vec<Event> {
        let records = self.engine.events(who, &id.to_string()).expect("readable");
        records.into_iter().map(|record| record.event).collect()
    }
}

fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: Some("p".to_owned()),
            session: Some(SessionName(session.to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Session,
    }
}

fn ask(bound: Option<ExecutionId>) -> Question {
    let mut question = Question::new(QuestionKind::Confirmation, "Continue?");
    question.execution = bound;
    question
}

fn told(error: Error) -> InteractionError {
    assert_eq!(error.code(), ErrorCode::Interaction, "{error}");
    let Error::Interaction(error) = error else {
        panic!("{error}");
    };
    error
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_in_as_a_line_and_is_on_record_without_its_text() {
    let lab = Lab::new().await;
    let me = caller("one");
    let id = lab.start(&me).await;
    let asked = lab
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked");
    assert_eq!(
        (asked.id.to_string().as_str(), &asked.state),
        ("i1", &InteractionState::Open)
    );
    let waiting = lab.engine.wait_for_answer(&me, "i1");
    let answering = lab.engine.answer_interaction(&me, "i1", "yes".to_owned());
    let (told_answer, answered) = tokio::join!(waiting, answering);
    assert_eq!(
        told_answer.expect("known"),
        InteractionOutcome::Answered("yes".to_owned())
    );
    let answered = answered.expect("taken");
    assert!(
        matches!(answered.state, InteractionState::Answered { by, .. } if by == Principal::unix(0))
    );
    assert_eq!(lab.typed(id), ["yes\n"]);
    let events = lab.events(&me, id);
    let input = Event::Input {
        by: Principal::unix(0),
        len: 4,
    };
    let answer = Event::PromptAnswered {
        by: Principal::unix(0),
    };
    assert_eq!(&events[events.len() - 2..], [input, answer]);
    // Once.
    let again = lab
        .engine
        .answer_interaction(&me, "i1", "no".to_owned())
        .await;
    let again = told(again.expect_err("it was answered"));
    assert!(
        matches!(
            again,
            InteractionError::Closed {
                state: "answered",
                ..
            }
        ),
        "{again}"
    );
    assert_eq!(lab.typed(id), ["yes\n"]);
    assert!(lab.engine.interactions(&me, true).is_empty());
    assert_eq!(lab.engine.interactions(&me, false).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_to_nobody_in_particular() {
    let lab = Lab::new().await;
    let me = caller("one");
    let mut question = Question::new(QuestionKind::ChoiceSelection, "Which?");
    question.options = vec!["red".to_owned(), "green".to_owned()];
    let id = lab
        .engine
        .open_interaction(&me, question)
        .expect("asked")
        .id
        .to_string();
    let refused = lab
        .engine
        .answer_interaction(&me, &id, "blue".to_owned())
        .await;
    let refused = told(refused.expect_err("not among them")).to_string();
    assert_eq!(
        refused,
        "'blue' is no answer to a choice_selection: one of red | green"
    );
    lab.engine
        .answer_interaction(&me, &id, "red".to_owned())
        .await
        .expect("taken");
    let answer = lab.engine.wait_for_answer(&me, &id).await.expect("known");
    assert_eq!(answer, InteractionOutcome::Answered("red".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn unknown_and_foreign_ones_are_told_alike() {
    let lab = Lab::new().await;
    let (me, other) = (caller("one"), caller("two"));
    let mine = lab
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
            lab.engine.interaction(who, id).expect_err("hidden"),
            lab.engine
                .wait_for_answer(who, id)
                .await
                .expect_err("hidden"),
            lab.engine
                .answer_interaction(who, id, yes())
                .await
                .expect_err("hidden"),
            lab.engine
                .cancel_interaction(who, id, None)
                .expect_err("hidden"),
        ];
        for error in errors {
            assert_eq!(error.to_string(), "Interaction not found or access denied");
            assert_eq!(told(error), InteractionError::NotFound);
        }
    }
    assert!(lab.engine.interactions(&other, false).is_empty());
    assert!(lab.engine.interactions(&stranger, false).is_empty());
    // An execution of somebody else cannot be asked about either.
    let id = lab.start(&me).await;
    let error = lab
        .engine
        .open_interaction(&other, ask(Some(id)))
        .expect_err("hidden");
    assert!(matches!(error, Error::NotFound), "{error}");
    // The command line sees all of its principal's.
    let mut person = other;
    person.scope = Scope::Principal;
    person.owner.session = None;
    assert_eq!(lab.engine.interactions(&person, true).len(), 1);
    lab.engine
        .answer_interaction(&person, &mine, "y".to_owned())
        .await
        .expect("taken");
}

#[tokio::test(start_paused = true)]
async fn time_runs_out_after_five_minutes() {
    let lab = Lab::new().await;
    let me = caller("one");
    let begin = Instant::now();
    let id = lab
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    let answer = lab.engine.wait_for_answer(&me, &id).await.expect("known");
    assert_eq!(answer, InteractionOutcome::TimedOut);
    let waited = begin.elapsed();
    let expected = Duration::from_millis(INTERACTION_TIMEOUT_MS);
    assert!(
        waited >= expected && waited < expected + Duration::from_secs(1),
        "{waited:?}"
    );
    let late = lab
        .engine
        .answer_interaction(&me, &id, "yes".to_owned())
        .await;
    let late = told(late.expect_err("too late"));
    assert!(
        matches!(
            late,
            InteractionError::Closed {
                state: "timed_out",
                ..
            }
        ),
        "{late}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_default_is_taken_and_typed_in() {
    let lab = Lab::new().await;
    let me = caller("one");
    let id = lab.start(&me).await;
    let mut bound = ask(Some(id));
    bound.default = Some("n".to_owned());
    bound.timeout = Duration::from_millis(1);
    let mut free = bound.clone();
    free.execution = None;
    for question in [bound, free] {
        let asked = lab
            .engine
            .open_interaction(&me, question)
            .expect("asked")
            .id
            .to_string();
        let answer = lab
            .engine
            .wait_for_answer(&me, &asked)
            .await
            .expect("known");
        assert_eq!(answer, InteractionOutcome::Default("n".to_owned()));
        let state = lab.engine.interaction(&me, &asked).expect("known").state;
        assert_eq!(state, InteractionState::TimedOut { took_default: true });
    }
    assert_eq!(lab.typed(id), ["n\n"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_nothing_leaves_the_question_open() {
    let lab = Lab::with(|place| place.with_input_limit(0)).await;
    let me = caller("one");
    let id = lab.start(&me).await;
    let mut question = ask(Some(id));
    question.default = Some("yes".to_owned());
    let asked = lab
        .engine
        .open_interaction(&me, question)
        .expect("asked")
        .id
        .to_string();
    let refused = lab
        .engine
        .answer_interaction(&me, &asked, "yes".to_owned())
        .await;
    let refused = told(refused.expect_err("none of it"));
    assert_eq!(
        refused,
        InteractionError::PartiallyWritten { taken: 0, given: 4 }
    );
    assert!(
        lab.engine
            .interaction(&me, &asked)
            .expect("known")
            .is_open()
    );
    // The default does not get in either.
    let answer = lab
        .engine
        .wait_for_answer(&me, &asked)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::TimedOut);
    let answered = |event: &Event| matches!(event, Event::PromptAnswered { .. });
    assert!(!lab.events(&me, id).iter().any(answered));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_little_by_little_gets_all_of_it() {
    let lab = Lab::with(|place| place.with_input_limit(2)).await;
    let me = caller("one");
    let id = lab.start(&me).await;
    let asked = lab
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked")
        .id;
    let answering = lab
        .engine
        .answer_interaction(&me, &asked.to_string(), "yes".to_owned())
        .await;
    answering.expect("taken");
    assert_eq!(lab.typed(id), ["yes\n", "s\n"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_execution_cancels_what_it_asks() {
    let lab = Lab::new().await;
    let me = caller("one");
    let (id, other) = (lab.start(&me).await, lab.start(&me).await);
    let asked = lab
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked")
        .id
        .to_string();
    let left = lab
        .engine
        .open_interaction(&me, ask(Some(other)))
        .expect("asked")
        .id;
    let waiting = lab.engine.wait_for_answer(&me, &asked);
    let ending = async { lab.place.end(id, WaitStatus::Code(0)) };
    let (answer, _) = tokio::join!(waiting, ending);
    assert_eq!(
        answer.expect("known"),
        InteractionOutcome::Cancelled(CancelReason::ExecutionEnded)
    );
    let open = lab.engine.interactions(&me, true);
    assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [left]);
    let late = lab
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect_err("it has ended");
    assert_eq!(told(late), InteractionError::Ended { id });
}

#[tokio::test(start_paused = true)]
async fn input_by_another_way_answers_and_keys_alone_do_not() {
    let lab = Lab::new().await;
    let me = caller("one");
    let id = lab.start(&me).await;
    let asked = lab
        .engine
        .open_interaction(&me, ask(Some(id)))
        .expect("asked")
        .id
        .to_string();
    let write = async |bytes: &[u8]| {
        let taken = lab.engine.write(&me, &id.to_string(), bytes.to_vec()).await;
        taken.expect("taken");
    };
    write(b"ye").await;
    assert!(
        lab.engine
            .interaction(&me, &asked)
            .expect("known")
            .is_open()
    );
    write(b"s\n").await;
    let answer = lab
        .engine
        .wait_for_answer(&me, &asked)
        .await
        .expect("known");
    assert_eq!(
        answer,
        InteractionOutcome::Cancelled(CancelReason::AnsweredElsewhere)
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_on_request_with_the_reason() {
    let lab = Lab::new().await;
    let me = caller("one");
    let mut changes = lab.engine.interaction_changes();
    let asked = lab
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    assert!(changes.has_changed().expect("the engine lives"));
    changes.mark_unchanged();
    let reason = Some("not now".to_owned());
    let told_state = lab
        .engine
        .cancel_interaction(&me, &asked, reason)
        .expect("open")
        .state;
    let InteractionState::Cancelled { reason } = told_state else {
        panic!("{told_state:?}");
    };
    assert_eq!(reason.to_string(), "cancelled by uid:0: not now");
    let answer = lab
        .engine
        .wait_for_answer(&me, &asked)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Cancelled(reason));
    assert!(changes.has_changed().expect("the engine lives"));
    let again = lab.engine.cancel_interaction(&me, &asked, None);
    let again = told(again.expect_err("it was cancelled"));
    assert!(matches!(
        again,
        InteractionError::Closed {
            state: "cancelled",
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn at_below_and_above_the_limit_of_open_ones() {
    let lab = Lab::new().await;
    let (me, other) = (caller("one"), caller("two"));
    for _ in 0..MAX_OPEN {
        lab.engine.open_interaction(&me, ask(None)).expect("room");
    }
    let limit = MAX_OPEN;
    let full = told(
        lab.engine
            .open_interaction(&me, ask(None))
            .expect_err("full"),
    );
    assert_eq!(full, InteractionError::TooMany { open: limit, limit });
    lab.engine
        .open_interaction(&other, ask(None))
        .expect("another session has room");
    lab.engine
        .cancel_interaction(&me, "i1", None)
        .expect("open");
    lab.engine
        .open_interaction(&me, ask(None))
        .expect("room again");
    let newest = lab
        .engine
        .interactions(&me, true)
        .first()
        .map(|it| it.id.to_string());
    assert_eq!(newest.as_deref(), Some("i34"));
}

#[tokio::test(start_paused = true)]
async fn questions_that_cannot_be_asked() {
    let lab = Lab::new().await;
    let me = caller("one");
    let wrong: [fn(&mut Question); 7] = [
        |it| it.message = "  ".to_owned(),
        |it| it.message = "x".repeat(super::MESSAGE_BYTES + 1),
        |it| it.options = vec![String::new(); super::OPTIONS + 1],
        |it| it.options = vec!["x".repeat(super::OPTION_BYTES + 1)],
        |it| it.kind = QuestionKind::ChoiceSelection,
        |it| it.timeout = Duration::ZERO,
        |it| {
            it.secret = true;
            it.default = Some("hunter2".to_owned());
        },
    ];
    for make_wrong in wrong {
        let mut question = ask(None);
        make_wrong(&mut question);
        let error = told(
            lab.engine
                .open_interaction(&me, question)
                .expect_err("wrong"),
        );
        assert!(
            matches!(error, InteractionError::Question { .. }),
            "{error}"
        );
    }
    let mut longest = ask(None);
    longest.message = "x".repeat(super::MESSAGE_BYTES);
    lab.engine
        .open_interaction(&me, longest)
        .expect("right at the limit");
}

#[tokio::test(start_paused = true)]
async fn a_session_takes_its_questions_along_and_services_keep_theirs() {
    let lab = Lab::new().await;
    let me = caller("one");
    let mut request = StartRequest::argv(["true"], "/");
    request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request.lifetime = Some(ostler_model::Lifetime::service(
        ostler_model::RestartPolicy::Never,
    ));
    let service = lab.engine.start(&me, request).await.expect("started").id;
    let finite = lab.start(&me).await;
    let of_service = lab
        .engine
        .open_interaction(&me, ask(Some(service)))
        .expect("asked")
        .id
        .to_string();
    let of_finite = lab
        .engine
        .open_interaction(&me, ask(Some(finite)))
        .expect("asked")
        .id
        .to_string();
    let free = lab
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    lab.engine.end_session(&me).await.expect("ended");
    for id in [of_finite, free] {
        let answer = lab.engine.wait_for_answer(&me, &id).await.expect("known");
        assert_eq!(
            answer,
            InteractionOutcome::Cancelled(CancelReason::SessionEnded),
            "{id}"
        );
    }
    let next = caller("two");
    lab.engine
        .answer_interaction(&next, &of_service, "yes".to_owned())
        .await
        .expect("the project's now");
    assert_eq!(lab.typed(service), ["yes\n"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_nobody_waiting() {
    let lab = Lab::new().await;
    let me = caller("one");
    let asked = lab
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    let (answer, ()) = tokio::join!(
        lab.engine.wait_for_answer(&me, &asked),
        lab.engine.shutdown()
    );
    assert_eq!(
        answer.expect("known"),
        InteractionOutcome::Cancelled(CancelReason::Shutdown)
    );
    let late = lab
        .engine
        .open_interaction(&me, ask(None))
        .expect_err("closing");
    assert!(matches!(late, Error::Closing), "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_answer_is_not_kept() {
    let lab = Lab::new().await;
    let me = caller("one");
    let id = lab.start(&me).await;
    let mut question = Question::new(QuestionKind::InputRequest, "Password:");
    question.secret = true;
    question.execution = Some(id);
    let asked = lab
        .engine
        .open_interaction(&me, question)
        .expect("asked")
        .id
        .to_string();
    lab.engine
        .answer_interaction(&me, &asked, "hunter2".to_owned())
        .await
        .expect("taken");
    assert_eq!(lab.typed(id), ["hunter2\n"]);
    let answer = lab
        .engine
        .wait_for_answer(&me, &asked)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Answered(String::new()));
    assert!(!format!("{:?}", lab.engine).contains("hunter2"));
    assert!(!format!("{:?}", lab.events(&me, id)).contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_command_is_looked_at_ever_more_rarely() {
    let lab = Lab::new().await;
    let me = caller("one");
    let id = lab.start(&me).await.to_string();
    let wait = async |seconds| {
        let at_most = Some(Duration::from_secs(seconds));
        let waited = lab.engine.wait(&me, &id, &WaitFor::Prompt, at_most).await;
        waited.expect("known").end
    };
    assert_eq!(wait(10).await, WaitEnd::TimedOut);
    // After 0.15, 0.45, 1.05, 2.25, 4.25, 6.25, 8.25 seconds.
    assert_eq!(lab.place.snapshot_count(), 7);
    let polls = ForegroundProcess {
        pid: 9,
        polls: true,
        ..ForegroundProcess::default()
    };
    lab.place.set_snapshot(TreeSnapshot {
        foreground: Some(polls),
        ..TreeSnapshot::default()
    });
    // It waits for several things and has said nothing.
    assert_eq!(wait(1).await, WaitEnd::TimedOut);
}
