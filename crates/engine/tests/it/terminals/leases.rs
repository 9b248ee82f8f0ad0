use ostler_engine::{Error, Lease, LeaseId, Question, TerminalInput, WaitEnd, WaitFor};
use ostler_model::{ErrorCode, Event, TermSize};
use ostler_terminal::InputPiece;

use super::fixture::{TerminalFixture, error_of, within_timeout};
use crate::test_engine::test_caller;

async fn take(fixture: &TerminalFixture, id: &str, name: &str, over: bool) -> Result<Lease, Error> {
    fixture
        .engine
        .acquire_lease(&test_caller(), id, name, over)
        .await
}

async fn types(
    fixture: &TerminalFixture,
    id: &str,
    text: &str,
    lease: Option<&LeaseId>,
) -> Result<u64, Error> {
    let typing = TerminalInput {
        pieces: vec![InputPiece::Text(text.to_owned())],
        lease: lease.cloned(),
    };
    Ok(fixture
        .engine
        .send_input(&test_caller(), id, typing)
        .await?
        .accepted)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_types_others_watch() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["cat"]).await;
    assert_eq!(
        fixture
            .engine
            .lease_holder(&test_caller(), &id)
            .expect("known"),
        None
    );
    let mut first = take(&fixture, &id, "first", false).await.expect("free");
    let holder = fixture
        .engine
        .lease_holder(&test_caller(), &id)
        .expect("known");
    assert_eq!(holder.expect("held").name, "first");
    types(&fixture, &id, "by first\n", Some(first.id()))
        .await
        .expect("theirs");
    let wide = TermSize { cols: 99, rows: 24 };
    for refusal in [
        types(&fixture, &id, "x", None).await.map(drop),
        fixture
            .engine
            .write(&test_caller(), &id, b"x".to_vec())
            .await
            .map(drop),
        fixture.engine.close_input(&test_caller(), &id).await,
        fixture.engine.resize(&test_caller(), &id, wide).await,
        fixture
            .engine
            .resize_terminal(&test_caller(), &id, wide, None)
            .await,
        take(&fixture, &id, "second", false).await.map(drop),
    ] {
        let refusal = error_of(refusal);
        assert!(matches!(&refusal, Error::Leased { holder, .. } if holder == "first"));
        assert_eq!(refusal.code(), ErrorCode::ProcessControl);
        assert!(refusal.to_string().starts_with("first types in "));
    }
    fixture
        .engine
        .resize_terminal(&test_caller(), &id, wide, Some(first.id()))
        .await
        .expect("theirs");
    // Watchers still see the output.
    assert_eq!(fixture.wait_text(&id, "by first").await.size, wide);

    let second = take(&fixture, &id, "second", true)
        .await
        .expect("taken over");
    assert_eq!(within_timeout(first.wait_takeover()).await.name, "second");
    error_of(types(&fixture, &id, "x", Some(first.id())).await);
    drop(first);
    let holder = fixture
        .engine
        .lease_holder(&test_caller(), &id)
        .expect("known");
    assert_eq!(
        holder.expect("held").name,
        "second",
        "a lost lease is not handed back"
    );
    drop(second);
    assert_eq!(
        fixture
            .engine
            .lease_holder(&test_caller(), &id)
            .expect("known"),
        None
    );
    types(&fixture, &id, "by all\n", None).await.expect("free");
    fixture.wait_text(&id, "by all").await;
    fixture.stop(&id).await;
    fixture
        .engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    let events = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("readable");
    let hands: Vec<bool> = events
        .iter()
        .filter_map(|it| {
            if let Event::LeaseTaken { by } = &it.event {
                return Some(by.is_some());
            }
            None
        })
        .collect();
    assert_eq!(hands, [true, true, false]);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_never_keeps_from_stopping() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["cat"]).await;
    let lease = take(&fixture, &id, "somebody", false).await.expect("free");
    fixture
        .engine
        .signal(&test_caller(), &id, ostler_model::Signal::INT)
        .await
        .expect("signals pass");
    fixture.wait_end(&id).await;
    drop(lease);
    let late = take(&fixture, &id, "late", true).await;
    assert!(matches!(error_of(late), Error::ControlFailed(_)));
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_by_who_types() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start(&[
            "bash",
            "--norc",
            "-c",
            "read -p 'Go on? [y/N] ' x; echo got $x",
        ])
        .await;
    let WaitEnd::Prompt(prompt) = fixture.wait_for(&id, WaitFor::Prompt).await else {
        panic!("no prompt");
    };
    let question = Question::from_prompt(&prompt, fixture.info(&id).id);
    let interaction_id = fixture
        .engine
        .open_interaction(&test_caller(), question)
        .expect("asked");
    let name = interaction_id.id.to_string();
    let lease = take(&fixture, &id, "somebody", false).await.expect("free");
    let refusal = error_of(
        fixture
            .engine
            .answer_interaction(&test_caller(), &name, "yes".to_owned())
            .await,
    );
    assert!(matches!(refusal, Error::Leased { .. }));
    assert!(
        fixture
            .engine
            .interaction(&test_caller(), &name)
            .expect("known")
            .is_open()
    );
    drop(lease);
    fixture
        .engine
        .answer_interaction(&test_caller(), &name, "yes".to_owned())
        .await
        .expect("accepted");
    fixture.wait_output(&id, "got [yY]").await;
    fixture.engine.shutdown().await;
}
