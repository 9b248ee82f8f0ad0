//! The interaction service over a fake backend: cancellation, limits, the end of sessions and of the
//! engine.

use std::time::Duration;

use ostler_model::snapshot::ForegroundProcess;
use ostler_model::{Principal, QuestionSource, TreeSnapshot};

use super::table::{
    MAX_ENDED, MAX_OPEN, MAX_OPEN_OF_CLIENTS, MAX_OPEN_OF_COMMANDS_OF_PRINCIPAL,
    MAX_OPEN_OF_PRINCIPAL,
};
use super::tests::{InteractionFixture, ask, caller, interaction_error};
use super::{
    CancelReason, Interaction, InteractionBound, InteractionError, InteractionOutcome,
    InteractionState, Question, QuestionKind,
};
use crate::{Error, StartRequest, WaitEnd, WaitFor};

#[tokio::test(start_paused = true)]
async fn cancelled_on_request_with_the_reason() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let mut changes = fixture.engine.interaction_changes();
    let interaction_id = fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    assert!(changes.has_changed().expect("the engine lives"));
    changes.mark_unchanged();
    let reason = Some("not now".to_owned());
    let told_state = fixture
        .engine
        .cancel_interaction(&me, &interaction_id, reason)
        .await
        .expect("open")
        .state;
    let InteractionState::Cancelled { reason } = told_state else {
        panic!("{told_state:?}");
    };
    assert_eq!(reason.to_string(), "cancelled by uid:0: not now");
    let answer = fixture
        .engine
        .wait_for_answer(&me, &interaction_id)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Cancelled(reason));
    assert!(changes.has_changed().expect("the engine lives"));
    let again = fixture
        .engine
        .cancel_interaction(&me, &interaction_id, None)
        .await;
    let again = interaction_error(again.expect_err("it was cancelled"));
    assert!(matches!(
        again,
        InteractionError::Closed {
            state: InteractionState::Cancelled { .. },
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn at_below_and_above_the_limit_of_open_ones() {
    let fixture = InteractionFixture::new().await;
    let (me, other) = (caller("one"), caller("two"));
    for _ in 0..MAX_OPEN {
        fixture
            .engine
            .open_interaction(&me, ask(None))
            .expect("room");
    }
    let limit = MAX_OPEN;
    let full = interaction_error(
        fixture
            .engine
            .open_interaction(&me, ask(None))
            .expect_err("full"),
    );
    let bound = InteractionBound::Session;
    assert_eq!(full, InteractionError::TooMany { bound, limit });
    fixture
        .engine
        .open_interaction(&other, ask(None))
        .expect("another session has room");
    fixture
        .engine
        .cancel_interaction(&me, "i1", None)
        .await
        .expect("open");
    fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect("room again");
    let newest = fixture
        .engine
        .interactions(&me, true)
        .first()
        .map(|it| it.id.to_string());
    assert_eq!(newest.as_deref(), Some("i34"));
}

/// Opens a question of this source, of a session of a principal.
fn open_as(
    fixture: &InteractionFixture,
    session: usize,
    principal: u32,
    source: QuestionSource,
) -> Result<Interaction, Error> {
    let mut who = caller(&format!("s{session}"));
    who.owner.principal = Principal::unix(principal);
    let mut question = ask(None);
    question.source = source;
    fixture.engine.open_interaction(&who, question)
}

#[tokio::test(start_paused = true)]
async fn clients_leave_room_for_approvals_and_other_principals() {
    let fixture = InteractionFixture::new().await;
    let open = |session, principal, source| open_as(&fixture, session, principal, source);
    for at in 0..MAX_OPEN_OF_CLIENTS {
        open(at / MAX_OPEN, 0, QuestionSource::Api).expect("room");
    }
    let limit = MAX_OPEN_OF_CLIENTS;
    let full = open(limit, 0, QuestionSource::Api).expect_err("full");
    let bound = InteractionBound::Principal;
    assert_eq!(
        interaction_error(full),
        InteractionError::TooMany { bound, limit }
    );
    open(limit, 0, QuestionSource::Policy).expect("an approval has room");
    open(0, 7, QuestionSource::Api).expect("another principal has room");
}

#[tokio::test(start_paused = true)]
async fn one_principal_leaves_room_for_the_others() {
    let fixture = InteractionFixture::new().await;
    let open = |session, principal, source| open_as(&fixture, session, principal, source);
    let bound = InteractionBound::Principal;
    for (source, limit) in [
        (QuestionSource::Command, MAX_OPEN_OF_COMMANDS_OF_PRINCIPAL),
        (
            QuestionSource::Policy,
            MAX_OPEN_OF_PRINCIPAL - MAX_OPEN_OF_COMMANDS_OF_PRINCIPAL,
        ),
    ] {
        for at in 0..limit {
            open(at / MAX_OPEN, 0, source).expect("room");
        }
        let full = interaction_error(open(limit, 0, source).expect_err("full"));
        let is_bound = matches!(full, InteractionError::TooMany { bound: it, .. } if it == bound);
        assert!(is_bound, "{full}");
        open(0, 7, source).expect("another principal has room");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_questions() {
    let fixture = InteractionFixture::new().await;
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
        let error = interaction_error(
            fixture
                .engine
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
    fixture
        .engine
        .open_interaction(&me, longest)
        .expect("right at the limit");
}

#[tokio::test(start_paused = true)]
async fn a_session_takes_its_questions_along_and_services_keep_theirs() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let mut request = StartRequest::argv(["true"], "/");
    request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request.lifetime = Some(ostler_model::Lifetime::service(
        ostler_model::RestartPolicy::Never,
    ));
    let service = fixture
        .engine
        .start(&me, request)
        .await
        .expect("started")
        .id;
    let finite = fixture.start(&me).await;
    let of_service = fixture
        .engine
        .open_interaction(&me, ask(Some(service)))
        .expect("asked")
        .id
        .to_string();
    let of_finite = fixture
        .engine
        .open_interaction(&me, ask(Some(finite)))
        .expect("asked")
        .id
        .to_string();
    let free = fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    fixture.engine.end_session(&me).await.expect("ended");
    for id in [of_finite, free] {
        let answer = fixture
            .engine
            .wait_for_answer(&me, &id)
            .await
            .expect("known");
        assert_eq!(
            answer,
            InteractionOutcome::Cancelled(CancelReason::SessionEnded),
            "{id}"
        );
    }
    let next = caller("two");
    fixture
        .engine
        .answer_interaction(&next, &of_service, "yes".to_owned())
        .await
        .expect("the project's now");
    assert_eq!(fixture.typed(service), ["yes\n"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_every_wait() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let interaction_id = fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect("asked")
        .id
        .to_string();
    let (answer, ()) = tokio::join!(
        fixture.engine.wait_for_answer(&me, &interaction_id),
        fixture.engine.shutdown()
    );
    assert_eq!(
        answer.expect("known"),
        InteractionOutcome::Cancelled(CancelReason::Shutdown)
    );
    let late = fixture
        .engine
        .open_interaction(&me, ask(None))
        .expect_err("closing");
    assert!(matches!(late, Error::Closing), "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_answer_is_not_kept() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let mut question = Question::new(QuestionKind::InputRequest, "Password:");
    question.secret = true;
    question.execution = Some(id);
    let interaction_id = fixture
        .engine
        .open_interaction(&me, question)
        .expect("asked")
        .id
        .to_string();
    fixture
        .engine
        .answer_interaction(&me, &interaction_id, "hunter2".to_owned())
        .await
        .expect("accepted");
    assert_eq!(fixture.typed(id), ["hunter2\n"]);
    let answer = fixture
        .engine
        .wait_for_answer(&me, &interaction_id)
        .await
        .expect("known");
    assert_eq!(answer, InteractionOutcome::Answered(String::new()));
    assert!(!format!("{:?}", fixture.engine).contains("hunter2"));
    assert!(!format!("{:?}", fixture.events(&me, id)).contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_command_is_looked_at_ever_more_rarely() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let id = fixture.start(&me).await.to_string();
    let wait = async |seconds| {
        let at_most = Some(Duration::from_secs(seconds));
        let waited = fixture
            .engine
            .wait(&me, &id, &WaitFor::Prompt, at_most)
            .await;
        waited.expect("known").end
    };
    assert_eq!(wait(10).await, WaitEnd::TimedOut);
    // After 0.15, 0.45, 1.05, 2.25, 4.25, 6.25, 8.25 seconds.
    assert_eq!(fixture.place.snapshot_count(), 7);
    let polls = ForegroundProcess {
        pid: 9,
        polls: true,
        ..ForegroundProcess::default()
    };
    fixture.place.set_snapshot(TreeSnapshot {
        foreground: Some(polls),
        ..TreeSnapshot::default()
    });
    // It polls several descriptors and has printed nothing.
    assert_eq!(wait(1).await, WaitEnd::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_after_many_others_is_known_for_longest() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let open = || {
        let opened = fixture.engine.open_interaction(&me, ask(None));
        opened.expect("asked").id.to_string()
    };
    let first = open();
    for _ in 0..=MAX_ENDED {
        let id = open();
        let cancelled = fixture.engine.cancel_interaction(&me, &id, None).await;
        cancelled.expect("open");
    }
    let answered = fixture
        .engine
        .answer_interaction(&me, &first, "yes".to_owned())
        .await;
    assert!(matches!(
        answered.expect("open").state,
        InteractionState::Answered { .. }
    ));
    let outcome = fixture.engine.wait_for_answer(&me, &first).await;
    assert_eq!(
        outcome.expect("known"),
        InteractionOutcome::Answered("yes".to_owned())
    );
    assert_eq!(fixture.engine.interactions(&me, false).len(), MAX_ENDED);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_client_answers_the_prompt_and_no_other_client() {
    let fixture = InteractionFixture::new().await;
    let me = caller("one");
    let id = fixture.start(&me).await;
    let open = |source| {
        let mut question = ask(Some(id));
        question.source = source;
        let opened = fixture.engine.open_interaction(&me, question);
        opened.expect("asked").id.to_string()
    };
    let (client, other) = (open(QuestionSource::Api), open(QuestionSource::Api));
    let prompt = open(QuestionSource::Command);
    let answered = fixture
        .engine
        .answer_interaction(&me, &client, "yes".to_owned())
        .await;
    answered.expect("open");
    let state = |id| fixture.engine.interaction(&me, id).expect("known").state;
    let reason = CancelReason::AnsweredElsewhere;
    assert_eq!(state(&prompt), InteractionState::Cancelled { reason });
    assert_eq!(state(&other), InteractionState::Open);
    assert_eq!(fixture.typed(id), ["yes\n"]);
}
