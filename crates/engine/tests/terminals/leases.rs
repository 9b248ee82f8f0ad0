use ostler_engine::{Error, Lease, LeaseId, Question, TerminalInput, WaitEnd, WaitFor};
use ostler_model::{ErrorCode, Event, TermSize};
use ostler_terminal::InputPiece;

use crate::fixture::{TerminalFixture, error_of, test_caller, within_timeout};

async fn take(lab: &TerminalFixture, id: &str, name: &str, over: bool) -> Result<Lease, Error> {
    lab.engine
        .acquire_lease(&test_caller(), id, name, over)
        .await
}

async fn types(
    lab: &TerminalFixture,
    id: &str,
    text: &str,
    lease: Option<&LeaseId>,
) -> Result<u64, Error> {
    let typing = TerminalInput {
        pieces: vec![InputPiece::Text(text.to_owned())],
        lease: lease.cloned(),
    };
    Ok(lab
        .engine
        .send_input(&test_caller(), id, typing)
        .await?
        .accepted)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_types_others_watch() {
    let lab = TerminalFixture::new().await;
    let id = lab.start(&["cat"]).await;
    assert_eq!(
        lab.engine.lease_holder(&test_caller(), &id).expect("known"),
        None
    );
    let mut first = take(&lab, &id, "first", false).await.expect("free");
    let holder = lab.engine.lease_holder(&test_caller(), &id).expect("known");
    assert_eq!(holder.expect("held").name, "first");
    types(&lab, &id, "by first\n", Some(first.id()))
        .await
        .expect("theirs");
    let wide = TermSize { cols: 99, rows: 24 };
    for refusal in [
        types(&lab, &id, "x", None).await.map(drop),
        lab.engine
            .write(&test_caller(), &id, b"x".to_vec())
            .await
            .map(drop),
        lab.engine.close_input(&test_caller(), &id).await,
        lab.engine.resize(&test_caller(), &id, wide).await,
        lab.engine
            .resize_terminal(&test_caller(), &id, wide, None)
            .await,
        take(&lab, &id, "second", false).await.map(drop),
    ] {
        let refusal = error_of(refusal);
        assert!(matches!(&refusal, Error::Leased { holder, .. } if holder == "first"));
        assert_eq!(refusal.code(), ErrorCode::ProcessControl);
        assert!(refusal.to_string().starts_with("first types in "));
    }
    lab.engine
        .resize_terminal(&test_caller(), &id, wide, Some(first.id()))
        .await
        .expect("theirs");
    // Who watches sees it all the same.
    assert_eq!(lab.wait_text(&id, "by first").await.size, wide);

    let second = take(&lab, &id, "second", true).await.expect("taken over");
    assert_eq!(within_timeout(first.wait_takeover()).await.name, "second");
    error_of(types(&lab, &id, "x", Some(first.id())).await);
    drop(first);
    let holder = lab.engine.lease_holder(&test_caller(), &id).expect("known");
    assert_eq!(
        holder.expect("held").name,
        "second",
        "a lost lease is not handed back"
    );
    drop(second);
    assert_eq!(
        lab.engine.lease_holder(&test_caller(), &id).expect("known"),
        None
    );
    types(&lab, &id, "by all\n", None).await.expect("free");
    lab.wait_text(&id, "by all").await;
    lab.stop(&id).await;
    lab.engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    let events = lab.engine.events(&test_caller(), &id).expect("readable");
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
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_never_keeps_from_stopping() {
    let lab = TerminalFixture::new().await;
    let id = lab.start(&["cat"]).await;
    let lease = take(&lab, &id, "somebody", false).await.expect("free");
    lab.engine
        .signal(&test_caller(), &id, ostler_model::Signal::INT)
        .await
        .expect("signals pass");
    lab.wait_end(&id).await;
    drop(lease);
    let late = take(&lab, &id, "late", true).await;
    assert!(matches!(error_of(late), Error::ControlFailed(_)));
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_by_who_types() {
    let lab = TerminalFixture::new().await;
    let id = lab
        .start(&[
            "bash",
            "--norc",
            "-c",
            "read -p 'Go on? [y/N] ' x; echo got $x",
        ])
        .await;
    let WaitEnd::Prompt(prompt) = lab.wait_for(&id, WaitFor::Prompt).await else {
        panic!("no prompt");
    };
    let question = Question::from_prompt(prompt, lab.info(&id).id);
    let asked = lab
        .engine
        .open_interaction(&test_caller(), question)
        .expect("asked");
    let name = asked.id.to_string();
    let lease = take(&lab, &id, "somebody", false).await.expect("free");
    let refusal = error_of(
        lab.engine
            .answer_interaction(&test_caller(), &name, "yes".to_owned())
            .await,
    );
    assert!(matches!(refusal, Error::Leased { .. }));
    assert!(
        lab.engine
            .interaction(&test_caller(), &name)
            .expect("known")
            .is_open()
    );
    drop(lease);
    lab.engine
        .answer_interaction(&test_caller(), &name, "yes".to_owned())
        .await
        .expect("taken");
    lab.wait_output(&id, "got [yY]").await;
    lab.engine.shutdown().await;
}
