//! Pauses, also over a restart of the engine.

use libtest_mimic::Trial;
use ostler_engine::{Error, StdinRequest, StopRequest};
use ostler_model::{Event, TerminationCause};
use tempfile::TempDir;

use super::{block, open, output, sh, test_caller, wait_end};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_pause_is_on_record_and_ends", || {
            block(a_pause_is_on_record_and_ends())
        }),
        Trial::test("a_pause_stands_over_a_restart", || {
            block(a_pause_stands_over_a_restart())
        }),
        Trial::test("what_is_paused_can_be_stopped", || {
            block(what_is_paused_can_be_stopped())
        }),
    ]
}

async fn a_pause_is_on_record_and_ends() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let mut request = sh("read x; echo $x");
    request.stdin = StdinRequest::Open;
    let id = engine
        .start(&test_caller(), request)
        .await
        .expect("started")
        .id;
    let short = id.short();
    for _ in 0..2 {
        let paused = engine.pause(&test_caller(), &short).await.expect("paused");
        assert!(paused.state.paused && paused.state.ending.is_none());
    }
    for _ in 0..2 {
        let resumed = engine
            .resume(&test_caller(), &short)
            .await
            .expect("resumed");
        assert!(!resumed.state.paused);
    }
    engine
        .write(&test_caller(), &short, b"on\n".to_vec())
        .await
        .expect("accepted");
    wait_end(&engine, &short).await;
    assert_eq!(output(&engine, &short), ["on"]);
    let late = engine.pause(&test_caller(), &short).await;
    assert!(matches!(late, Err(Error::Freeze { .. })), "{late:?}");
    engine.shutdown().await;
    let events = state.path().join("executions").join(id.to_string());
    let log = ostler_journal::read_events(&events).expect("readable");
    let pauses = log
        .iter()
        .filter(|record| matches!(record.event, Event::Paused { .. } | Event::Resumed { .. }));
    assert_eq!(pauses.count(), 2, "each is told once");
}

async fn a_pause_stands_over_a_restart() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let request = sh("while :; do echo tick; sleep 0.01; done");
    let started = engine
        .start(&test_caller(), request)
        .await
        .expect("started");
    let id = started.id.short();
    engine.pause(&test_caller(), &id).await.expect("paused");
    engine.shutdown().await;
    drop(engine);

    let engine = open(state.path()).await;
    let info = engine.info(&test_caller(), &id).expect("known");
    assert!(info.state.paused && info.state.adoptions == 1);
    let resumed = engine.resume(&test_caller(), &id).await.expect("resumed");
    assert!(!resumed.state.paused);
    let paused = engine
        .pause(&test_caller(), &id)
        .await
        .expect("paused again");
    assert!(paused.state.paused);
    let stopped = engine
        .stop(&test_caller(), &id, StopRequest::default())
        .await;
    let ending = stopped.expect("stopped").state.ending.expect("ended");
    assert!(matches!(ending.cause, TerminationCause::Stopped { .. }));
    engine.shutdown().await;
}

async fn what_is_paused_can_be_stopped() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let request = sh("trap 'echo farewell; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    let started = engine
        .start(&test_caller(), request)
        .await
        .expect("started");
    let id = started.id.short();
    let up =
        ostler_engine::WaitFor::Pattern(ostler_journal::Pattern::new("^up$").expect("a pattern"));
    engine
        .wait(&test_caller(), &id, &up, Some(super::PATIENCE))
        .await
        .expect("known");
    engine.pause(&test_caller(), &id).await.expect("paused");
    let stopped = engine
        .stop(&test_caller(), &id, StopRequest::default())
        .await;
    let state = stopped.expect("stopped").state;
    assert!(!state.paused);
    let actual = output(&engine, &id);
    assert!(actual.contains(&"farewell".to_owned()), "{actual:?}");
    engine.shutdown().await;
}
