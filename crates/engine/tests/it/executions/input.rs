//! Input of commands.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn input_is_written_and_closed() {
    let fixture = TestEngine::new().await;
    let mut request = argv(&["cat"]);
    request.stdin = StdinRequest::Open;
    let info = fixture
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.to_string();
    let caller = caller("one");
    let taken = fixture
        .engine
        .write(&caller, &id, b"hello\n".to_vec())
        .await
        .expect("accepted");
    assert_eq!(taken, 6);
    let big = vec![b'x'; 300_000];
    let mut follower = fixture
        .engine
        .follow(&caller, &id, Cursor::START)
        .expect("known");
    let mut rest = &big[..];
    while !rest.is_empty() {
        let taken = fixture.engine.write(&caller, &id, rest.to_vec()).await;
        let taken = usize::try_from(taken.expect("it runs")).expect("fits");
        rest = &rest[taken..];
        // Where its pipe was full: once it has printed, it has read.
        let page = follower.next().await.expect("readable");
        assert!(page.is_some(), "it has not ended");
    }
    fixture
        .engine
        .close_input(&caller, &id)
        .await
        .expect("closed");
    let info = fixture.wait_end(&id).await;
    assert!(info.state.ending.expect("ended").is_success());
    assert_eq!(info.output_end, 300_006);
    let late = fixture
        .engine
        .write(&caller, &id, b"x".to_vec())
        .await
        .expect_err("ended");
    assert_eq!(late.code(), ErrorCode::ProcessControl);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_input_reaches_the_command() {
    let fixture = TestEngine::new().await;
    let mut request = argv(&["tr", "a-z", "A-Z"]);
    request.stdin = StdinRequest::Bytes(b"shout".to_vec());
    let waited = fixture
        .engine
        .run(&caller("one"), request, Some(PATIENCE))
        .await
        .expect("it ran");
    assert_eq!(
        fixture.lines(&waited.info.id.short(), StreamName::Stdout),
        ["SHOUT"]
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_write_waits_for_a_command_that_reads_and_not_for_one_that_does_not() {
    const BYTES: usize = 3_000_000;
    let fixture = TestEngine::new().await;
    let caller = caller("one");
    let mut reads = sh("wc -c");
    let mut sleeps = sh("exec sleep 300");
    (reads.stdin, sleeps.stdin) = (StdinRequest::Open, StdinRequest::Open);
    let reads = fixture
        .engine
        .start(&caller, reads)
        .await
        .expect("started")
        .id
        .short();
    let sleeps = fixture
        .engine
        .start(&caller, sleeps)
        .await
        .expect("started")
        .id
        .short();
    let write = async |id: &str| {
        let bytes = vec![b'x'; BYTES];
        fixture
            .engine
            .write(&caller, id, bytes)
            .await
            .expect("accepted")
    };
    assert_eq!(write(&reads).await, BYTES as u64);
    let taken = write(&sleeps).await;
    assert!(taken > 0 && taken < BYTES as u64, "{taken}");
    fixture
        .engine
        .close_input(&caller, &reads)
        .await
        .expect("closed");
    fixture.wait_end(&reads).await;
    assert_eq!(
        fixture.lines(&reads, StreamName::Stdout),
        [BYTES.to_string()]
    );
    fixture.engine.shutdown().await;
}
