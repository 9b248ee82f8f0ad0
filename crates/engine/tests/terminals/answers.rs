//! What a terminal answers by itself.

use ostler_model::Event;

use crate::fixture::{TerminalFixture, test_caller};

/// Asks, reads the answer up to its last character, and shows it.
fn asks(question: &str, last: &str) -> String {
    format!(
        "stty -echo; printf 'one\\ntwo{question}'; read -s -r -d {last} answer; \
         printf '\\nis %q.\\n' \"$answer\""
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_told_where_their_cursor_stands() {
    let lab = TerminalFixture::new().await;
    let script = asks("\\e[6n", "R");
    let id = lab.start(&["bash", "--norc", "-c", &script]).await;
    lab.wait_end(&id).await;
    lab.wait_text(&id, r"is $'\E[2;4'.").await;
    let events = lab.engine.events(&test_caller(), &id).expect("on record");
    let typed = |event: &Event| matches!(event, Event::Input { .. });
    assert!(!events.iter().any(|it| typed(&it.event)), "nobody typed");
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cursor_is_told_as_it_stood_at_the_question() {
    let lab = TerminalFixture::new().await;
    let script = asks("\\e[6n\\e[10;10Helsewhere", "R");
    let id = lab.start(&["bash", "--norc", "-c", &script]).await;
    lab.wait_end(&id).await;
    lab.wait_text(&id, r"is $'\E[2;4'.").await;
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_told_what_their_terminal_is() {
    let lab = TerminalFixture::new().await;
    let well = lab
        .start(&["bash", "--norc", "-c", &asks("\\e[5n", "n")])
        .await;
    lab.wait_end(&well).await;
    lab.wait_text(&well, r"is $'\E[0'.").await;
    let what = lab
        .start(&["bash", "--norc", "-c", &asks("\\e[c", "c")])
        .await;
    lab.wait_end(&what).await;
    lab.wait_text(&what, r"is $'\E[?62;22'.").await;
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_s_terminal_answers_for_itself() {
    let lab = TerminalFixture::new().await;
    let script = "stty -echo; read go; printf '\\e[6n'; read -s -r -t 1 -d R answer || echo none";
    let id = lab.start(&["bash", "--norc", "-c", script]).await;
    let lease = lab
        .engine
        .acquire_lease(&test_caller(), &id, "somebody", false)
        .await;
    let lease = lease.expect("free");
    let go = ostler_engine::TerminalInput {
        pieces: vec![ostler_terminal::InputPiece::Text("\n".to_owned())],
        lease: Some(lease.id().clone()),
    };
    lab.engine
        .send_input(&test_caller(), &id, go)
        .await
        .expect("typed");
    lab.wait_text(&id, "none").await;
    lab.wait_end(&id).await;
    lab.engine.shutdown().await;
}
