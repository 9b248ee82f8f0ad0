use std::time::Instant;

use ostler_backend::ControlError;
use ostler_engine::{TerminalInput, WaitFor};
use ostler_model::{ErrorCode, Event, TerminationCause};
use ostler_terminal::InputPiece;

use super::fixture::{TerminalFixture, error_of, find_file_with, key, terminal};
use crate::test_engine::{PATIENCE, caller, test_caller};
use ostler_engine::Error;

fn text(text: &str) -> TerminalInput {
    TerminalInput {
        pieces: vec![InputPiece::Text(text.to_owned())],
        lease: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_is_echoed_and_read() {
    let fixture = TerminalFixture::new().await;
    let id = fixture
        .start(&["bash", "--norc", "-c", "read line; echo got $line"])
        .await;
    let typed = fixture.type_text(&id, "words\n").await;
    assert_eq!((typed.bytes, typed.accepted), (6, 6));
    fixture.wait_text(&id, "got words").await;
    fixture.wait_end(&id).await;
    let nothing = TerminalInput::default();
    let late = error_of(
        fixture
            .engine
            .send_input(&test_caller(), &id, nothing)
            .await,
    );
    assert!(matches!(late, Error::ControlFailed(ControlError::Ended)));
    assert_eq!(late.code(), ErrorCode::ProcessControl);
    assert_eq!(late.to_string(), "the process has ended");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_encoded_for_the_programs_modes() {
    let fixture = TerminalFixture::new().await;
    let script = "stty raw -echo; printf ready; exec cat -v";
    let id = fixture.start(&["sh", "-c", script]).await;
    fixture.wait_text(&id, "ready").await;
    fixture
        .press_keys(&id, vec![key("up"), InputPiece::Paste("p".to_owned())])
        .await;
    fixture.wait_text(&id, "^[[Ap").await;
    let modes = "stty raw -echo; printf '\\033[?1h\\033[?2004hready'; exec cat -v";
    let id = fixture.start(&["sh", "-c", modes]).await;
    fixture.wait_text(&id, "ready").await;
    fixture
        .press_keys(
            &id,
            vec![key("up"), InputPiece::Paste("p\u{1b}q".to_owned())],
        )
        .await;
    fixture.wait_text(&id, "^[OA^[[200~pq^[[201~").await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typings_do_not_mix() {
    let fixture = TerminalFixture::new().await;
    let script = "stty raw -echo; printf ready; exec cat";
    let id = fixture.start(&["sh", "-c", script]).await;
    fixture.wait_text(&id, "ready").await;
    let typists = (b'a'..b'i').map(|letter| {
        let (engine, id) = (fixture.engine.clone(), id.clone());
        async move {
            // More than one order carries.
            let typing = TerminalInput {
                pieces: vec![InputPiece::Raw(vec![letter; 100_000])],
                lease: None,
            };
            engine
                .send_input(&test_caller(), &id, typing)
                .await
                .expect("typed")
        }
    });
    let typed = futures_util::future::join_all(typists).await;
    assert!(typed.iter().all(|it| it.accepted == 100_000));
    let after = ostler_model::Cursor {
        offset: 800_004,
        event: 0,
    };
    fixture.wait_for(&id, WaitFor::OutputAfter(after)).await;
    let page = fixture.page(&id, Some(5), None).await;
    assert_eq!(page.data.len(), 800_000);
    for typing in page.data.chunks(100_000) {
        assert!(typing.iter().all(|byte| *byte == typing[0]));
    }
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_blocks_no_other() {
    let fixture = TerminalFixture::new().await;
    let script = "stty raw -echo; printf ready; exec sleep 100";
    let id = fixture.start(&["sh", "-c", script]).await;
    fixture.wait_text(&id, "ready").await;
    let began = Instant::now();
    let typing = TerminalInput {
        pieces: vec![InputPiece::Raw(vec![b'x'; 1_000_000])],
        lease: None,
    };
    let me = test_caller();
    let write = fixture.engine.send_input(&me, &id, typing);
    let look = async {
        fixture.screen(&id).await;
        began.elapsed()
    };
    let (typed, looked) = tokio::join!(write, look);
    let typed = typed.expect("part of it was taken");
    assert_eq!(typed.bytes, 1_000_000);
    assert!(typed.accepted < 100_000, "{typed:?}");
    assert!(began.elapsed() < PATIENCE / 4);
    assert!(looked < began.elapsed());
    let stopped = fixture.stop(&id).await;
    assert!(matches!(
        stopped.state.ending.expect("ended").cause,
        TerminationCause::Stopped { .. }
    ));
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_is_refused_before_anything_is_typed() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["cat"]).await;
    let most = ostler_engine::terminal::TYPING_BYTES;
    let typing = |bytes| TerminalInput {
        pieces: vec![InputPiece::Raw(vec![b'x'; bytes])],
        lease: None,
    };
    let beyond = error_of(
        fixture
            .engine
            .send_input(&test_caller(), &id, typing(most + 1))
            .await,
    );
    assert_eq!(beyond.code(), ErrorCode::Value);
    fixture.type_text(&id, "nothing before\n").await;
    fixture.wait_output(&id, "nothing before").await;
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_nowhere() {
    let fixture = TerminalFixture::new().await;
    let script = "import getpass; secret = getpass.getpass(); print(len(secret), 'characters')";
    let id = fixture.start(&["python3", "-c", script]).await;
    fixture.wait_text(&id, "Password:").await;
    let prompt = fixture.wait_for(&id, WaitFor::Prompt).await;
    let ostler_engine::WaitEnd::Prompt(prompt) = prompt else {
        panic!("{prompt:?}");
    };
    assert!(prompt.secret);
    fixture.type_text(&id, "open-sesame-4711\n").await;
    fixture.wait_text(&id, "16 characters").await;
    fixture.wait_end(&id).await;
    fixture.screen(&id).await;
    fixture
        .engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    let events = fixture
        .engine
        .events(&test_caller(), &id)
        .expect("readable");
    let lengths: Vec<u64> = events
        .iter()
        .filter_map(|it| {
            if let Event::Input { len, .. } = it.event {
                return Some(len);
            }
            None
        })
        .collect();
    assert_eq!(lengths, [17]);
    fixture.engine.shutdown().await;
    assert_eq!(
        find_file_with(fixture.state.path(), b"open-sesame-4711"),
        None
    );
    assert!(find_file_with(fixture.state.path(), b"16 characters").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_described_as_one() {
    let fixture = TerminalFixture::new().await;
    let id = fixture.start(&["cat"]).await;
    let unknown = error_of(fixture.engine.screen(&test_caller(), "0000000000000").await);
    let foreign = error_of(fixture.engine.screen(&caller("two"), &id).await);
    let typing = fixture
        .engine
        .send_input(&caller("two"), &id, text("x"))
        .await;
    for error in [unknown, foreign, error_of(typing)] {
        assert_eq!(error.code(), ErrorCode::SessionNotFound);
        assert_eq!(error.code().info().name, "session_not_found");
        assert_eq!(error.to_string(), "Session not found or access denied");
    }
    let mut pipes = terminal(&["cat"]);
    pipes.options.pty = None;
    let id = fixture.start_request(pipes).await.id.to_string();
    let none = error_of(fixture.engine.screen(&test_caller(), &id).await);
    assert!(matches!(none, Error::NoTerminal { .. }));
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_one_of_ours() {
    let fixture = TerminalFixture::new().await;
    let print = [
        "sh",
        "-c",
        r#"echo "[$TERM] [$COLUMNS] [$LINES]"; stty size"#,
    ];
    let mut request = terminal(&print);
    request.base_env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("TERM".into(), "vt52".into()),
        ("COLUMNS".into(), "7".into()),
        ("LINES".into(), "7".into()),
    ];
    request.options.inherit_env = Some(true);
    let id = fixture.start_request(request.clone()).await.id.to_string();
    let view = fixture.wait_text(&id, "24 80").await;
    assert_eq!(view.rows[0], "[xterm-256color] [] []");
    request.options.set_env = vec![("TERM".into(), "dumb".into()), ("LINES".into(), "9".into())];
    let id = fixture.start_request(request).await.id.to_string();
    let view = fixture.wait_text(&id, "24 80").await;
    assert_eq!(view.rows[0], "[dumb] [] [9]");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_hangs_up() {
    let fixture = TerminalFixture::new().await;
    let received = fixture.state.path().join("heard");
    let script = format!(
        "trap 'echo hangup > {}; exit 3' HUP; trap '' TERM; echo ready; while :; do read x; done",
        received.display()
    );
    let id = fixture.start(&["bash", "--norc", "-c", &script]).await;
    fixture.wait_text(&id, "ready").await;
    fixture.stop(&id).await;
    assert_eq!(
        std::fs::read_to_string(&received).expect("it heard"),
        "hangup\n"
    );
    // An interactive shell that ignores TERM goes at once.
    let id = fixture.start(&["bash", "--norc", "-i"]).await;
    fixture.wait_text(&id, "bash-").await;
    let began = Instant::now();
    let request = ostler_engine::StopRequest {
        grace: Some(PATIENCE),
        ..ostler_engine::StopRequest::default()
    };
    fixture
        .engine
        .stop(&test_caller(), &id, request)
        .await
        .expect("stopped");
    assert!(began.elapsed() < PATIENCE / 4);
    fixture.engine.shutdown().await;
}
