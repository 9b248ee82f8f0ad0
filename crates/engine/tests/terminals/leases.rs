use ostler_engine::{Error, Lease, LeaseId, Question, Typing, WaitEnd, WaitFor};
use ostler_model::{ErrorCode, Event, TermSize};
use ostler_terminal::Piece;

use crate::lab::{Lab, me, refused, soon};

async fn take(lab: &Lab, id: &str, name: &str, over: bool) -> Result<Lease, Error> {
    lab.engine.take_lease(&me(), id, name, over).await
}

async fn types(lab: &Lab, id: &str, text: &str, lease: Option<&LeaseId>) -> Result<u64, Error> {
    let typing = Typing {
        pieces: vec![Piece::Text(text.to_owned())],
        lease: lease.cloned(),
    };
    Ok(lab.engine.type_in(&me(), id, typing).await?.taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_types_others_watch() {
    let lab = Lab::new().await;
    let id = lab.start(&["cat"]).await;
    assert_eq!(lab.engine.lease_holder(&me(), &id).expect("known"), None);
    let mut first = take(&lab, &id, "first", false).await.expect("free");
    let holder = lab.engine.lease_holder(&me(), &id).expect("known");
    assert_eq!(holder.expect("held").name, "first");
    types(&lab, &id, "by first\n", Some(first.id()))
        .await
        .expect("theirs");
    let wide = TermSize { cols: 99, rows: 24 };
    for refusal in [
        types(&lab, &id, "x", None).await.map(drop),
        lab.engine.write(&me(), &id, b"x".to_vec()).await.map(drop),
        lab.engine.close_input(&me(), &id).await,
        lab.engine.resize(&me(), &id, wide).await,
        lab.engine.resize_terminal(&me(), &id, wide, None).await,
        take(&lab, &id, "second", false).await.map(drop),
    ] {
        let refusal = refused(refusal);
        assert!(matches!(&refusal, Error::Leased { holder, .. } if holder == "first"));
        assert_eq!(refusal.code(), ErrorCode::ProcessControl);
        assert!(refusal.to_string().starts_with("first types in "));
    }
    lab.engine
        .resize_terminal(&me(), &id, wide, Some(first.id()))
        .await
        .expect("theirs");
    // Who watches sees it all the same.
    assert_eq!(lab.says(&id, "by first").await.size, wide);

    let second = take(&lab, &id, "second", true).await.expect("taken over");
    assert_eq!(soon(first.lost()).await.name, "second");
    refused(types(&lab, &id, "x", Some(first.id())).await);
    drop(first);
    let holder = lab.engine.lease_holder(&me(), &id).expect("known");
    assert_eq!(
        holder.expect("held").name,
        "second",
        "a lost lease is not handed back"
    );
    drop(second);
    assert_eq!(lab.engine.lease_holder(&me(), &id).expect("known"), None);
    types(&lab, &id, "by all\n", None).await.expect("free");
    lab.says(&id, "by all").await;
    lab.stop(&id).await;
    lab.engine.settled(&me(), &id).await.expect("known");
    let events = lab.engine.events(&me(), &id).expect("readable");
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
    let lab = Lab::new().await;
    let id = lab.start(&["cat"]).await;
    let lease = take(&lab, &id, "somebody", false).await.expect("free");
    lab.engine
        .signal(&me(), &id, ostler_model::Signal::INT)
        .await
        .expect("signals pass");
    lab.ends(&id).await;
    drop(lease);
    let late = take(&lab, &id, "late", true).await;
    assert!(matches!(refused(late), Error::Control(_)));
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_by_who_types() {
    let lab = Lab::new().await;
    let id = lab
        .start(&[
            "bash",
            "--norc",
            "-c",
            "read -p 'Go on? [y/N] ' x; echo got $x",
        ])
        .await;
    let WaitEnd::Prompt(prompt) = lab.waits(&id, WaitFor::Prompt).await else {
        panic!("no prompt");
    };
    let question = Question::of_prompt(prompt, lab.info(&id).id);
    let asked = lab.engine.ask(&me(), question).expect("asked");
    let name = asked.id.to_string();
    let lease = take(&lab, &id, "somebody", false).await.expect("free");
    let refusal = refused(lab.engine.answer(&me(), &name, "yes".to_owned()).await);
    assert!(matches!(refusal, Error::Leased { .. }));
    assert!(
        lab.engine
            .interaction(&me(), &name)
            .expect("known")
            .is_open()
    );
    drop(lease);
    lab.engine
        .answer(&me(), &name, "yes".to_owned())
        .await
        .expect("taken");
    lab.prints(&id, "got [yY]").await;
    lab.engine.shutdown().await;
}
