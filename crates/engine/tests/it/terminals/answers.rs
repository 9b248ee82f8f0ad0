//! What a terminal answers by itself.

use ostler_model::Event;

use super::fixture::TerminalFixture;
use crate::test_engine::test_caller;

/// Asks, reads the answer up to its last character, and shows it.
fn asks(question: &str, last: &str) -> String {
    format!(
        "stty -echo; printf 'one\\ntwo{question}'; read -s -r -d {last} answer; \
         printf '\\nis %q.\\n' \"$answer\""
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_the_cursor_position() {
    let fixture = TerminalFixture::new().await;
    let script = asks("\\e[6n", "R");
    let id = fixture.start(&["bash", "--norc", "-c", &script]).await;
    fixture.wait_end(&id).await;
    fixture.wait_text(&id, r"is $'\E[2;4'.").await;
    let events = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("on record");
    let typed = |event: &Event| matches!(event, Event::Input { .. });
    assert!(!events.iter().any(|it| typed(&it.event)), "nobody typed");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cursor_is_reported_as_of_the_query() {
    let fixture = TerminalFixture::new().await;
    let script = asks("\\e[6n\\e[10;10Helsewhere", "R");
    let id = fixture.start(&["bash", "--norc", "-c", &script]).await;
    fixture.wait_end(&id).await;
    fixture.wait_text(&id, r"is $'\E[2;4'.").await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_replies_about_their_terminal() {
    let fixture = TerminalFixture::new().await;
    let well = fixture
        .start(&["bash", "--norc", "-c", &asks("\\e[5n", "n")])
        .await;
    fixture.wait_end(&well).await;
    fixture.wait_text(&well, r"is $'\E[0'.").await;
    let what = fixture
        .start(&["bash", "--norc", "-c", &asks("\\e[c", "c")])
        .await;
    fixture.wait_end(&what).await;
    fixture.wait_text(&what, r"is $'\E[?62;22'.").await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_s_terminal_answers_for_itself() {
    let fixture = TerminalFixture::new().await;
    let script = "stty -echo; read go; printf '\\e[6n'; read -s -r -t 1 -d R answer || echo none";
    let id = fixture.start(&["bash", "--norc", "-c", script]).await;
    let lease = fixture
        .engine
        .acquire_lease(&test_caller(), &id, "somebody", false)
        .await;
    let lease = lease.expect("free");
    let go = ostler_engine::TerminalInput {
        pieces: vec![ostler_terminal::InputPiece::Text("\n".to_owned())],
        lease: Some(lease.id().clone()),
    };
    fixture
        .engine
        .send_input(&test_caller(), &id, go)
        .await
        .expect("typed");
    fixture.wait_text(&id, "none").await;
    fixture.wait_end(&id).await;
    fixture.engine.shutdown().await;
}
