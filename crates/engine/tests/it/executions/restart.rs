//! The end of an engine, and the next one.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn ended_executions_are_there_after_a_restart() {
    let fixture = TestEngine::new().await;
    let waited = fixture
        .engine
        .run(&caller("one"), sh("echo kept; exit 4"), Some(PATIENCE))
        .await
        .expect("ran");
    let id = waited.info.id.short();
    fixture.engine.shutdown().await;
    let before = fixture.engine.info(&caller("one"), &id).expect("known");
    let engine = open_engine(fixture.state.path(), |_| {}).await;
    let after = engine.info(&caller("one"), &id).expect("known again");
    assert_eq!(after.state, before.state);
    assert_eq!(after.output_end, 5);
    assert_eq!(*after.spec, *before.spec);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_missing_are_rebuilt_from_spec_and_exit_record() {
    let fixture = TestEngine::new().await;
    let waited = fixture
        .engine
        .run(&caller("one"), sh("exit 4"), Some(PATIENCE))
        .await
        .expect("ran");
    let id = waited.info.id;
    fixture.engine.shutdown().await;
    let dir = fixture.state.path().join("executions").join(id.to_string());
    std::fs::remove_file(dir.join("events.jsonl")).expect("it was written");
    let engine = open_engine(fixture.state.path(), |_| {}).await;
    let after = engine
        .info(&caller("one"), &id.short())
        .expect("known again");
    assert_eq!(after.state.ending.as_ref().and_then(|it| it.code), Some(4));
    assert_eq!(after.state.started_at, waited.info.state.started_at);
    assert!(dir.join("events.jsonl").exists());
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_stops_what_is_not_durable_and_refuses_the_rest() {
    let fixture = TestEngine::new().await;
    let info = fixture.start(argv(&["sleep", "300"])).await;
    fixture.engine.shutdown().await;
    let info = fixture
        .engine
        .info(&caller("one"), &info.id.short())
        .expect("known");
    assert!(matches!(
        info.state.ending.expect("ended").cause,
        TerminationCause::Stopped { .. }
    ));
    let error = fixture
        .engine
        .start(&caller("one"), argv(&["true"]))
        .await
        .expect_err("closed");
    assert!(matches!(error, Error::Closing));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_engine_works_in_a_state_directory() {
    let fixture = TestEngine::new().await;
    let place = LocalBackend::open(fixture.state.path(), ZygoteConfig::InProcess)
        .await
        .expect("a place");
    let second = Engine::open(Settings::new(fixture.state.path()), Arc::new(place)).await;
    let error = second.expect_err("locked");
    assert_eq!(error.code(), ErrorCode::Initialization);
    assert!(
        error
            .to_string()
            .ends_with(&format!("in use by process {}", std::process::id())),
        "{error}"
    );
    fixture.engine.shutdown().await;
}
