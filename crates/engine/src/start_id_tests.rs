//! Starts under ids that clients chose, over a fake backend: sent twice, at once, to the next
//! engine, by others.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::termination::WaitStatus;
use ostler_model::{
    Caller, ErrorCode, ExecutionId, Owner, Principal, RestartPolicy, Scope, SessionName,
    TerminationCause,
};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::{Engine, Error, ListFilter, ServiceRequest, Settings, StartRequest, WaitFor};

const PATIENCE: Duration = Duration::from_secs(30);

fn caller(uid: u32, scope: Scope, session: Option<&str>) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(uid),
            project: None,
            session: session.map(|name| SessionName(name.to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope,
        projects: ostler_model::ProjectView::default(),
    }
}

fn me() -> Caller {
    caller(0, Scope::Principal, None)
}

fn request(id: ExecutionId) -> StartRequest {
    let mut request = StartRequest::argv(["true"], "/");
    request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request.id = Some(id);
    request
}

fn service(id: ExecutionId, name: &str) -> ServiceRequest {
    ServiceRequest {
        name: Some(name.to_owned()),
        restart: RestartPolicy::Never,
        ..ServiceRequest::new(request(id))
    }
}

async fn open(state: &TempDir, backend: &Arc<FakeBackend>) -> Engine {
    let backend: Arc<dyn ostler_backend::Backend> = Arc::clone(backend) as _;
    let engine = Engine::open(Settings::new(state.path()), backend).await;
    engine.expect("an engine")
}

async fn fixture(act: SpawnBehavior) -> (TempDir, Arc<FakeBackend>, Engine) {
    let state = TempDir::new().expect("a directory");
    let backend = Arc::new(FakeBackend::new(state.path(), move |_| act.clone()));
    let engine = open(&state, &backend).await;
    (state, backend, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn starts_that_come_together_begin_one_execution() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    for round in 1..=200 {
        let id = ExecutionId::mint();
        let starts: JoinSet<_> = (0..8)
            .map(|_| {
                let engine = engine.clone();
                async move { engine.start(&me(), request(id)).await }
            })
            .collect();
        for started in starts.join_all().await {
            let info = started.expect("started");
            assert_eq!(info.id, id);
            assert!(info.state.started_at.is_some(), "answered before it ran");
        }
        assert_eq!(backend.running(), round);
    }
    assert_eq!(engine.list(&me(), &ListFilter::default()).len(), 200);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_answered_also_after_the_end_and_by_the_next_engine() {
    let (state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let (id, other) = (ExecutionId::mint(), ExecutionId::mint());
    engine.start(&me(), request(id)).await.expect("started");
    engine.start(&me(), request(other)).await.expect("started");
    assert!(backend.end(other, WaitStatus::Code(3)));
    engine
        .wait(&me(), &other.to_string(), &WaitFor::Exit, Some(PATIENCE))
        .await
        .expect("known");
    let again = engine.start(&me(), request(other)).await.expect("answered");
    assert!(again.state.is_finished());
    engine.shutdown().await;
    drop(engine);

    let engine = open(&state, &backend).await;
    let again = engine.start(&me(), request(id)).await.expect("answered");
    assert!(again.recovered && !again.state.is_finished());
    let again = engine.start(&me(), request(other)).await.expect("answered");
    let ending = again.state.ending.expect("it ended");
    assert_eq!(ending.code, Some(3));
    assert_eq!(engine.list(&me(), &ListFilter::default()).len(), 2);
    assert_eq!(backend.running(), 1);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_failed_fails_alike_and_one_refused_can_be_made_good() {
    let (_state, _place, engine) = fixture(SpawnBehavior::SpawnFailed { errno: 8 }).await;
    let id = ExecutionId::mint();
    for _ in 0..2 {
        let error = engine.start(&me(), request(id)).await.expect_err("no");
        assert!(matches!(&error, Error::SpawnFailed { id: theirs, .. } if *theirs == id));
    }
    engine.shutdown().await;

    let (_state, _place, engine) = fixture(SpawnBehavior::Run).await;
    let mut refused = request(id);
    refused.cwd = "/no/such/directory".into();
    assert!(engine.start(&me(), refused).await.is_err());
    let info = engine.start(&me(), request(id)).await.expect("started");
    assert_eq!(info.id, id);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_others_and_ids_that_cannot_be_are_refused() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let id = ExecutionId::mint();
    let mine = caller(0, Scope::Session, Some("one"));
    engine.start(&mine, request(id)).await.expect("started");
    let strangers = [
        caller(1, Scope::Principal, None),
        caller(0, Scope::Session, Some("two")),
    ];
    let mut short = ExecutionId::mint().to_bytes();
    short[11..].copy_from_slice(&id.to_bytes()[11..]);
    let same_short = ExecutionId::from_bytes(short);
    assert_eq!(same_short.short(), id.short());
    let taken = engine.start(&me(), request(same_short)).await;
    let taken = taken.expect_err("its short form is taken");
    for stranger in strangers {
        let error = engine.start(&stranger, request(id)).await.expect_err("no");
        assert_eq!(error.code(), ErrorCode::Value);
        assert_eq!(error.to_string(), taken.to_string());
    }
    let nil = ExecutionId::from_bytes([0; 16]);
    let error = engine.start(&me(), request(nil)).await.expect_err("no");
    assert_eq!(error.code(), ErrorCode::Value);
    assert_eq!(backend.running(), 1);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_given_up_is_cancelled_unless_another_waits_for_it() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let id = ExecutionId::mint();
    let first = engine
        .start_guarded(&me(), request(id))
        .await
        .expect("started");
    let second = engine
        .start_guarded(&me(), request(id))
        .await
        .expect("started");
    drop(first);
    drop(second);
    assert_eq!(backend.running(), 1, "two asked for it");
    let alone = ExecutionId::mint();
    drop(
        engine
            .start_guarded(&me(), request(alone))
            .await
            .expect("started"),
    );
    let waited = engine
        .wait(&me(), &alone.to_string(), &WaitFor::Exit, Some(PATIENCE))
        .await
        .expect("known");
    let cause = waited.info.state.ending.expect("it ended").cause;
    assert!(
        matches!(cause, TerminationCause::Stopped { .. }),
        "{cause:?}"
    );
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_start_during_the_shutdown_is_answered_at_once_and_found_by_the_next_engine() {
    let (state, backend, mut engine) = fixture(SpawnBehavior::Run).await;
    for _ in 0..30 {
        let id = ExecutionId::mint();
        let (starter, closer) = (engine.clone(), engine.clone());
        let mut close = JoinSet::new();
        close.spawn(async move { closer.shutdown().await });
        let start = async move { starter.start(&me(), request(id)).await };
        let started = tokio::time::timeout(PATIENCE, start).await;
        let started = started.expect("in time");
        close.join_all().await;
        drop(engine);
        engine = open(&state, &backend).await;
        if let Err(error) = started {
            assert!(matches!(error, Error::Closing), "{error}");
        }
        let info = engine.start(&me(), request(id)).await.expect("started");
        assert!(info.id == id && !info.state.is_finished(), "{info:?}");
    }
    assert_eq!(backend.running(), 30);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn services_are_started_once() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    for round in 1..=50 {
        let id = ExecutionId::mint();
        let name = format!("service-{round}");
        let starts: JoinSet<_> = (0..4)
            .map(|_| {
                let (engine, request) = (engine.clone(), service(id, &name));
                async move {
                    let guard = engine.start_service(&me(), request).await?;
                    guard.commit()
                }
            })
            .collect();
        for started in starts.join_all().await {
            let info = started.expect("started");
            assert_eq!(info.id, id);
        }
        let ensured = engine.ensure_service(&me(), service(id, &name)).await;
        let ensured = ensured.expect("reused").service;
        assert_eq!(ensured.execution.expect("it lives").id, id);
        assert_eq!(backend.running(), round);
    }
    // A service that is restarted is another execution.
    let before = engine.list(&me(), &ListFilter::default()).len();
    let id = ExecutionId::mint();
    let request = service(id, "anew");
    let guard = engine.start_service(&me(), request).await.expect("started");
    guard.detach().expect("open");
    assert!(backend.end(id, WaitStatus::Code(0)));
    engine
        .wait(&me(), &id.to_string(), &WaitFor::Exit, Some(PATIENCE))
        .await
        .expect("known");
    let anew = engine
        .restart_service(&me(), "anew", None)
        .await
        .expect("anew");
    assert_ne!(anew.execution.expect("it lives").id, id);
    assert_eq!(engine.list(&me(), &ListFilter::default()).len(), before + 2);
    engine.shutdown().await;
}
