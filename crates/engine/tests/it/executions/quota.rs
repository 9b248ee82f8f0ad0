//! A start at the quota waits its turn.

use super::*;

use ostler_model::ExecutionId;
use tokio::task::JoinSet;

const LIMIT: u32 = 2;

async fn full() -> (TestEngine, Vec<String>) {
    let fixture = TestEngine::with(|settings| settings.quotas.finite_per_session = LIMIT).await;
    let mut held = Vec::new();
    for _ in 0..LIMIT {
        held.push(fixture.start(argv(&["sleep", "300"])).await.id.short());
    }
    (fixture, held)
}

async fn stop(fixture: &TestEngine, id: &str) {
    let force = StopRequest {
        force: true,
        ..StopRequest::default()
    };
    let stopped = fixture.engine.stop(&caller("one"), id, force).await;
    stopped.expect("stopped");
}

/// A start under this id that waits in a task; dropping it cancels the wait.
struct Waiting(JoinSet<Result<ostler_engine::ExecutionInfo, Error>>);

impl Waiting {
    async fn outcome(mut self) -> Result<ostler_engine::ExecutionInfo, Error> {
        let ended = self.0.join_next().await.expect("it was begun");
        ended.expect("no panic")
    }
}

fn queued(fixture: &TestEngine, id: ExecutionId) -> Waiting {
    let mut request = argv(&["sleep", "300"]);
    request.id = Some(id);
    let engine = fixture.engine.clone();
    let mut starts = JoinSet::new();
    starts.spawn(async move { engine.start(&caller("one"), request).await });
    Waiting(starts)
}

/// Waits until the start with this id has this many starts ahead of it.
async fn waits(fixture: &TestEngine, id: ExecutionId, ahead: Option<usize>) {
    let until = Instant::now() + PATIENCE;
    loop {
        let queued = fixture.engine.queued_start(&caller("one"), id);
        if queued.as_ref().map(|it| it.ahead) == ahead {
            return;
        }
        assert!(Instant::now() < until, "{queued:?} instead of {ahead:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_are_served_in_turn_and_say_how_long_they_waited() {
    let (fixture, held) = full().await;
    let ids = [ExecutionId::mint(), ExecutionId::mint()];
    let first = queued(&fixture, ids[0]);
    waits(&fixture, ids[0], Some(0)).await;
    let second = queued(&fixture, ids[1]);
    waits(&fixture, ids[1], Some(1)).await;
    let other = fixture.engine.start(&caller("two"), argv(&["true"])).await;
    assert_eq!(other.expect("another session").queue_wait, None);
    stop(&fixture, &held[0]).await;
    let guard = first.outcome().await.expect("its turn");
    assert_eq!(guard.id, ids[0]);
    assert_eq!(guard.queue_wait.expect("it waited").limit, LIMIT);
    waits(&fixture, ids[1], Some(0)).await;
    stop(&fixture, &held[1]).await;
    assert_eq!(second.outcome().await.expect("its turn").id, ids[1]);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_a_start_waits_is_its_own_and_the_holders_are_named() {
    let (fixture, held) = full().await;
    for (millis, expected) in [(0, "run already"), (200, "none of them ended within 0.")] {
        let mut request = argv(&["true"]);
        request.options.queue_timeout = Some(Duration::from_millis(millis));
        let refused = fixture.engine.start(&caller("one"), request).await;
        let error = refused.expect_err("full");
        assert_eq!(error.code(), ErrorCode::QuotaExceeded);
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(&format!("{} (sleep 300)", held[0])), "{text}");
    }
    let mut wrong = argv(&["no-such-program-here"]);
    wrong.options.queue_timeout = None;
    let error = fixture.engine.start(&caller("one"), wrong).await;
    assert_eq!(
        error.expect_err("it is told at once").code(),
        ErrorCode::CommandExecution
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_gives_up_leaves_its_turn_to_the_next() {
    let (fixture, held) = full().await;
    let ids = [ExecutionId::mint(), ExecutionId::mint()];
    let first = queued(&fixture, ids[0]);
    waits(&fixture, ids[0], Some(0)).await;
    let second = queued(&fixture, ids[1]);
    waits(&fixture, ids[1], Some(1)).await;
    drop(first);
    waits(&fixture, ids[1], Some(0)).await;
    stop(&fixture, &held[0]).await;
    assert_eq!(second.outcome().await.expect("its turn").id, ids[1]);
    assert!(
        fixture
            .engine
            .info(&caller("one"), &ids[0].short())
            .is_err()
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_start_twice_waits_once() {
    let (fixture, held) = full().await;
    let id = ExecutionId::mint();
    let (first, again) = (queued(&fixture, id), queued(&fixture, id));
    waits(&fixture, id, Some(0)).await;
    let other = ExecutionId::mint();
    let last = queued(&fixture, other);
    waits(&fixture, other, Some(1)).await;
    stop(&fixture, &held[0]).await;
    assert_eq!(first.outcome().await.expect("its turn").id, id);
    assert_eq!(again.outcome().await.expect("the same").id, id);
    waits(&fixture, other, Some(0)).await;
    drop(last);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_session_and_of_the_engine_answer_who_waits() {
    let (fixture, _) = full().await;
    let id = ExecutionId::mint();
    let waiting = queued(&fixture, id);
    waits(&fixture, id, Some(0)).await;
    let ended = fixture.engine.end_session(&caller("one")).await;
    ended.expect("ended");
    let actual = waiting.outcome().await.expect_err("no session");
    assert!(matches!(actual, Error::SessionEnded), "{actual}");
    assert!(fixture.engine.info(&caller("one"), &id.short()).is_err());
    for _ in 0..LIMIT {
        fixture.start(argv(&["sleep", "300"])).await;
    }
    let id = ExecutionId::mint();
    let waiting = queued(&fixture, id);
    waits(&fixture, id, Some(0)).await;
    fixture.engine.shutdown().await;
    let actual = waiting.outcome().await.expect_err("closing");
    assert!(matches!(actual, Error::Closing), "{actual}");
}
