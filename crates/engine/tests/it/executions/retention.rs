//! Retention, clearing and removal, and the limit on the state directory.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn clean_removes_what_has_ended_and_only_that() {
    let fixture = TestEngine::new().await;
    let running = fixture.start(argv(&["sleep", "300"])).await.id.short();
    let ended = fixture.start(argv(&["true"])).await.id;
    fixture.wait_end(&ended.short()).await;
    let dir = fixture
        .state
        .path()
        .join("executions")
        .join(ended.to_string());
    assert!(dir.is_dir());
    let ids = [
        running.clone(),
        ended.short(),
        "unknown0".to_owned(),
        ended.short(),
    ];
    let outcomes = fixture
        .engine
        .clean(&caller("one"), &ids)
        .await
        .expect("a list");
    let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(
        outcomes,
        [
            CleanOutcome::Running,
            CleanOutcome::Cleaned,
            CleanOutcome::NotFound,
            CleanOutcome::NotFound,
        ]
    );
    assert!(!dir.exists());
    let empty = fixture
        .engine
        .clean(&caller("one"), &[])
        .await
        .expect_err("no ids");
    assert_eq!(empty.code(), ErrorCode::Value);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_cleared_also_while_it_runs() {
    let fixture = TestEngine::new().await;
    let mut request = sh("echo before; read x; echo after; sleep 300");
    request.stdin = StdinRequest::Open;
    let info = fixture
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.short();
    let until = WaitFor::Pattern(Pattern::new("before").expect("a pattern"));
    fixture
        .engine
        .wait(&caller("one"), &id, &until, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(
        fixture
            .engine
            .clear_output(&caller("one"), &id)
            .await
            .expect("cleared"),
        7
    );
    fixture
        .engine
        .write(&caller("one"), &id, b"\n".to_vec())
        .await
        .expect("accepted");
    let until = WaitFor::Pattern(Pattern::new("after").expect("a pattern"));
    fixture
        .engine
        .wait(&caller("one"), &id, &until, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(fixture.lines(&id, StreamName::Stdout), ["after"]);
    let info = fixture.engine.info(&caller("one"), &id).expect("known");
    assert_eq!(info.state.trimmed_bytes, 7);
    fixture
        .engine
        .stop(
            &caller("one"),
            &id,
            StopRequest {
                force: true,
                ..StopRequest::default()
            },
        )
        .await
        .expect("stopped");
    assert_eq!(
        fixture
            .engine
            .clear_output(&caller("one"), &id)
            .await
            .expect("cleared"),
        6
    );
    let info = fixture.engine.info(&caller("one"), &id).expect("known");
    assert_eq!(info.state.trimmed_bytes, 13);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_takes_its_finite_executions_along_and_leaves_the_rest_to_the_project() {
    let fixture = TestEngine::new().await;
    let mut caller = caller("one");
    caller.owner.project = Some("house".to_owned());
    let finite = fixture
        .engine
        .start(&caller, argv(&["sleep", "300"]))
        .await
        .expect("started")
        .id;
    let mut keep = argv(&["sleep", "300"]);
    keep.options.keep = true;
    let kept = fixture
        .engine
        .start(&caller, keep)
        .await
        .expect("started")
        .id;
    fixture.engine.end_session(&caller).await.expect("ended");
    let principal = Caller {
        scope: Scope::Principal,
        ..caller.clone()
    };
    let listed: Vec<_> = fixture
        .engine
        .list(&principal, &ListFilter::default())
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(listed, [kept]);
    let info = fixture
        .engine
        .info(&principal, &kept.short())
        .expect("kept");
    assert_eq!(info.owner.session, None);
    assert!(fixture.engine.info(&principal, &finite.short()).is_err());
    let mut other = caller.clone();
    other.owner.session = Some(SessionName("two".to_owned()));
    assert!(
        fixture.engine.info(&other, &kept.short()).is_ok(),
        "same project"
    );
    other.owner.project = Some("garden".to_owned());
    assert!(
        fixture.engine.info(&other, &kept.short()).is_err(),
        "other project"
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_removes_at_its_moment() {
    let fixture = TestEngine::new().await;
    let mut request = argv(&["true"]);
    request.options.retention = ostler_engine::RetentionRequest::For(Duration::from_millis(300));
    let waited = fixture
        .engine
        .run(&caller("one"), request, Some(PATIENCE))
        .await
        .expect("ran");
    let dir = fixture
        .state
        .path()
        .join("executions")
        .join(waited.info.id.to_string());
    let gone = async {
        // The removal is the fact waited for; nothing announces it.
        let mut every = tokio::time::interval(Duration::from_millis(10));
        while dir.exists() {
            every.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("removed");
    assert!(
        fixture
            .engine
            .list(&caller("one"), &ListFilter::default())
            .is_empty()
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_that_ran_out_meanwhile_is_applied_by_the_next_engine() {
    let fixture = TestEngine::new().await;
    let kept_for = Duration::from_secs(1);
    let mut ids = Vec::new();
    for retention in [
        ostler_engine::RetentionRequest::For(kept_for),
        ostler_engine::RetentionRequest::Forever,
    ] {
        let mut request = argv(&["true"]);
        request.options.retention = retention;
        let run = fixture
            .engine
            .run(&caller("one"), request, Some(PATIENCE))
            .await;
        ids.push(run.expect("ran").info.id);
    }
    let due = tokio::time::Instant::now() + kept_for;
    fixture.engine.shutdown().await;
    let dir = |id: &ExecutionId| {
        let executions = fixture.state.path().join("executions");
        executions.join(id.to_string())
    };
    assert!(dir(&ids[0]).exists(), "nobody removed it");
    tokio::time::sleep_until(due).await;
    let engine = open_engine(fixture.state.path(), |_| {}).await;
    let gone = async {
        // The removal is the fact waited for; nothing announces it.
        let mut every = tokio::time::interval(Duration::from_millis(10));
        while dir(&ids[0]).exists() {
            every.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("removed");
    let left = engine.list(&caller("one"), &ListFilter::default());
    let left: Vec<ExecutionId> = left.iter().map(|info| info.id).collect();
    assert_eq!(left, [ids[1]]);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_middle_of_a_running_commands_output_is_dropped_and_said_so() {
    const MIB: u64 = 1024 * 1024;
    let fixture = TestEngine::with(|settings| {
        settings.output = OutputPolicy {
            head_bytes: MIB,
            tail_bytes: MIB,
        };
    })
    .await;
    let mut request = sh("head -c 400000000 /dev/zero; read x");
    request.stdin = StdinRequest::Open;
    let info = fixture.engine.start(&caller("one"), request).await;
    let id = info.expect("started").id.short();
    let mut notices = fixture.engine.subscribe();
    // A wait for silence is notified of output, and so is the driver.
    let me = caller("one");
    let quiet = WaitFor::Idle(Duration::from_secs(1));
    let waited = fixture.engine.wait(&me, &id, &quiet, Some(PATIENCE));
    let waited = waited.await.expect("known");
    assert_eq!(waited.end, WaitEnd::Idle);
    let info = fixture.engine.info(&caller("one"), &id).expect("known");
    assert!(!info.state.is_finished());
    assert!(info.state.trimmed_bytes > 0, "{:?}", info.state);
    let trimmed = std::iter::from_fn(|| notices.try_recv().ok()).any(|notice| {
        matches!(
            notice.record.event,
            Event::Trimmed {
                reason: TrimReason::Retention,
                ..
            }
        )
    });
    assert!(trimmed);
    let journal = fixture.engine.journal(&caller("one"), &id).expect("known");
    let stats = journal.stats().expect("readable");
    assert_eq!(stats.dropped_bytes, info.state.trimmed_bytes);
    fixture.engine.shutdown().await;
}
