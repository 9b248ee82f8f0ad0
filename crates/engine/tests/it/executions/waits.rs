//! Waits and followers.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_runs_out_kills_nothing() {
    let fixture = TestEngine::new().await;
    let waited = fixture
        .engine
        .run(
            &caller("one"),
            argv(&["sleep", "300"]),
            Some(Duration::from_millis(50)),
        )
        .await
        .expect("it runs");
    assert_eq!(waited.end, WaitEnd::TimedOut);
    let id = waited.info.id.short();
    let info = fixture
        .engine
        .info(&caller("one"), &id)
        .expect("still known");
    assert_eq!(info.status().process, ProcessStatus::Running);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_run_is_cancelled() {
    let fixture = TestEngine::new().await;
    let mut activity = fixture.engine.running_count_watch();
    let mut notices = fixture.engine.subscribe();
    {
        let caller = caller("one");
        let request = argv(&["sleep", "300"]);
        let run = fixture.engine.run(&caller, request, None);
        tokio::pin!(run);
        tokio::select! {
            _ = &mut run => panic!("sleep does not end"),
            seen = activity.wait_for(|running| *running == 1) => drop(seen.expect("counted")),
        }
    }
    let none = activity.wait_for(|running| *running == 0);
    tokio::time::timeout(PATIENCE, none)
        .await
        .expect("cancelled")
        .expect("counted");
    let mut cancelled = false;
    while let Ok(notice) = notices.try_recv() {
        if let ostler_model::Event::Stopping { order } = &notice.record.event {
            cancelled |= *order == ostler_model::StopReason::Cancelled;
        }
    }
    assert!(cancelled);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_see_lines_and_quiet() {
    let fixture = TestEngine::new().await;
    let script = "echo one; printf 'name? '; read x; echo got $x; read y; sleep 300";
    let mut request = sh(script);
    request.stdin = StdinRequest::Open;
    let info = fixture
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.short();
    let pattern = WaitFor::Pattern(Pattern::new(r"name\?").expect("a pattern"));
    let waited = fixture
        .engine
        .wait(&caller("one"), &id, &pattern, Some(PATIENCE))
        .await
        .expect("known");
    let WaitEnd::Pattern(found) = waited.end else {
        panic!("{:?}", waited.end);
    };
    assert_eq!(found.line.to_string(), "name? ");
    fixture
        .engine
        .write(&caller("one"), &id, b"me\n".to_vec())
        .await
        .expect("accepted");
    let pattern = WaitFor::Pattern(Pattern::new("got me").expect("a pattern"));
    let waited = fixture
        .engine
        .wait(&caller("one"), &id, &pattern, Some(PATIENCE))
        .await
        .expect("known");
    assert!(
        matches!(waited.end, WaitEnd::Pattern(_)),
        "{:?}",
        waited.end
    );
    let quiet = WaitFor::Idle(Duration::from_millis(100));
    let waited = fixture
        .engine
        .wait(&caller("one"), &id, &quiet, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(waited.end, WaitEnd::Idle);
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
    let waited = fixture
        .engine
        .wait(&caller("one"), &id, &quiet, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(waited.end, WaitEnd::Exit);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_every_byte_and_the_end() {
    let fixture = TestEngine::new().await;
    let request = sh("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done");
    let info = fixture
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let mut follower = fixture
        .engine
        .follow(&caller("one"), &info.id.short(), Cursor::START)
        .expect("known");
    let mut seen = Vec::new();
    let all = async {
        while let Some(page) = follower.next().await.expect("readable") {
            for chunk in page.chunks {
                seen.extend(chunk.bytes);
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("it ends");
    let expected: String = (0..500).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&seen), expected);
    fixture.engine.shutdown().await;
}
