use std::time::Duration;

use ostler_engine::{Error, TerminalEvent, TerminalEvents};
use ostler_model::{Cursor, Termination, TerminationCause};
use tokio::task::JoinSet;

use super::fixture::{TerminalFixture, terminal, within_timeout};
use crate::test_engine::test_caller;

/// All events until the end.
async fn listen(mut events: TerminalEvents) -> (Vec<u8>, Vec<(u64, u64)>, Vec<Termination>) {
    let (mut output, mut gaps, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = events.next().await.expect("readable") {
        assert!(ends.is_empty(), "nothing comes after the end: {event:?}");
        match event {
            TerminalEvent::Output { data, .. } => output.extend(data),
            TerminalEvent::Gap { from, to } => gaps.push((from, to)),
            TerminalEvent::Exit(ending) => ends.push(ending),
        }
    }
    assert_eq!(events.next().await.expect("over"), None);
    (output, gaps, ends)
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_are_reported_once_under_load() {
    const SESSIONS: i32 = 50;
    let fixture = TerminalFixture::new().await;
    let mut listeners = JoinSet::new();
    for number in 0..SESSIONS {
        let script = format!("yes {number} | head -n 2000; exit {number}");
        let id = fixture.start(&["sh", "-c", &script]).await;
        for from in [0, 100] {
            let from = Cursor {
                offset: from,
                event: 0,
            };
            let events = fixture
                .engine
                .terminal_events(&test_caller(), &id, from)
                .expect("known");
            listeners.spawn(async move { (number, from, listen(events).await) });
        }
    }
    let mut received = 0;
    while let Some(one) = within_timeout(listeners.join_next()).await {
        let (number, from, (output, gaps, ends)) = one.expect("no panic");
        let line = format!("{number}\r\n");
        let skipped = usize::try_from(from.offset).expect("small");
        assert_eq!(output, &line.repeat(2000).as_bytes()[skipped..]);
        assert_eq!(gaps, []);
        assert_eq!(ends.len(), 1);
        assert_eq!(
            (&ends[0].cause, ends[0].code),
            (&TerminationCause::Exited, Some(number))
        );
        received += 1;
    }
    assert_eq!(received, 2 * SESSIONS);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_before_tells_its_end_too() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["sh", "-c", "printf before; exit 4"]).await;
    fixture.wait_end(&id).await;
    let from = Cursor::default();
    let events = fixture
        .engine
        .terminal_events(&test_caller(), &id, from)
        .expect("known");
    let (output, _, ends) = within_timeout(listen(events)).await;
    assert_eq!((output.as_slice(), ends[0].code), (&b"before"[..], Some(4)));

    let guard = fixture
        .engine
        .start_unawaited(&test_caller(), terminal(&["/dev/null"]))
        .await;
    let error = fixture
        .engine
        .start(&test_caller(), terminal(&["/proc/self/mem"]))
        .await;
    assert!(error.is_err() && guard.is_err());
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_be_executed_ends_without_output() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = TerminalFixture::new().await;
    let program = fixture.state.path().join("program");
    std::fs::write(&program, "no program").expect("room");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("allowed");
    let request = terminal(&[program.to_str().expect("a name")]);
    let guard = fixture
        .engine
        .start_unawaited(&test_caller(), request)
        .await
        .expect("admitted");
    let id = guard.commit().expect("open").id.to_string();
    let from = Cursor::default();
    let events = fixture
        .engine
        .terminal_events(&test_caller(), &id, from)
        .expect("known");
    let (output, _, ends) = within_timeout(listen(events)).await;
    assert_eq!(output, b"");
    assert!(matches!(
        ends[0].cause,
        TerminationCause::SpawnFailed { .. }
    ));
    assert_eq!(fixture.screen(&id).await.text(), "");
    assert_eq!(fixture.page(&id, None, None).await.end_offset, 0);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cleared_output_is_a_gap() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start(&["sh", "-c", "printf gone; read x; printf kept; read x"])
        .await;
    fixture.wait_text(&id, "gone").await;
    fixture
        .engine
        .clear_output(&test_caller(), &id)
        .await
        .expect("cleared");
    let from = Cursor::default();
    let mut events = fixture
        .engine
        .terminal_events(&test_caller(), &id, from)
        .expect("known");
    let gap = within_timeout(events.next()).await.expect("readable");
    assert_eq!(gap, Some(TerminalEvent::Gap { from: 0, to: 4 }));
    // Giving up a wait loses nothing.
    let none = tokio::time::timeout(Duration::from_millis(20), events.next()).await;
    assert!(none.is_err());
    fixture.type_text(&id, "\n").await;
    let mut output = Vec::new();
    while !output.ends_with(b"kept") {
        match within_timeout(events.next()).await.expect("readable") {
            Some(TerminalEvent::Output { offset, data }) => {
                assert_eq!(offset, 4 + output.len() as u64);
                output.extend(data);
                assert_eq!(events.cursor().offset, 4 + output.len() as u64);
            }
            other => panic!("{other:?}"),
        }
    }
    fixture.stop(&id).await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_ends_ends_the_events() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["cat"]).await;
    let from = Cursor::default();
    let events = fixture
        .engine
        .terminal_events(&test_caller(), &id, from)
        .expect("known");
    let engine = fixture.engine.clone();
    let (received, ()) = within_timeout(futures_util::future::join(
        async {
            let mut events = events;
            loop {
                match events.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return true,
                    Err(Error::Closing) => return false,
                    Err(error) => panic!("{error}"),
                }
            }
        },
        engine.shutdown(),
    ))
    .await;
    assert!(received, "without a keeper, its programs end with it");
}
