use std::time::Instant;

use ostler_backend::ControlError;
use ostler_engine::{TerminalInput, WaitFor};
use ostler_model::{ErrorCode, Event, TerminationCause};
use ostler_terminal::InputPiece;

use crate::fixture::{
    PATIENCE, TerminalFixture, caller, error_of, find_file_with, key, terminal, test_caller,
};
use ostler_engine::Error;

fn text(text: &str) -> TerminalInput {
    TerminalInput {
        pieces: vec![InputPiece::Text(text.to_owned())],
        lease: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_is_echoed_and_read() {
    let lab = TerminalFixture::new().await;
    let id = lab
        .start(&["bash", "--norc", "-c", "read line; echo got $line"])
        .await;
    let typed = lab.type_text(&id, "words\n").await;
    assert_eq!((typed.bytes, typed.accepted), (6, 6));
    lab.wait_text(&id, "got words").await;
    lab.wait_end(&id).await;
    let nothing = TerminalInput::default();
    let late = error_of(lab.engine.send_input(&test_caller(), &id, nothing).await);
    assert!(matches!(late, Error::ControlFailed(ControlError::Ended)));
    assert_eq!(late.code(), ErrorCode::ProcessControl);
    assert_eq!(late.to_string(), "the process has ended");
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_sent_as_the_program_asked_for_them() {
    let lab = TerminalFixture::new().await;
    let script = "stty raw -echo; printf ready; exec cat -v";
    let id = lab.start(&["sh", "-c", script]).await;
    lab.wait_text(&id, "ready").await;
    lab.press_keys(&id, vec![key("up"), InputPiece::Paste("p".to_owned())])
        .await;
    lab.wait_text(&id, "^[[Ap").await;
    let modes = "stty raw -echo; printf '\\033[?1h\\033[?2004hready'; exec cat -v";
    let id = lab.start(&["sh", "-c", modes]).await;
    lab.wait_text(&id, "ready").await;
    lab.press_keys(
        &id,
        vec![key("up"), InputPiece::Paste("p\u{1b}q".to_owned())],
    )
    .await;
    lab.wait_text(&id, "^[OA^[[200~pq^[[201~").await;
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typings_do_not_mix() {
    let lab = TerminalFixture::new().await;
    let script = "stty raw -echo; printf ready; exec cat";
    let id = lab.start(&["sh", "-c", script]).await;
    lab.wait_text(&id, "ready").await;
    let typists = (b'a'..b'i').map(|letter| {
        let (engine, id) = (lab.engine.clone(), id.clone());
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
    lab.wait_for(&id, WaitFor::OutputAfter(after)).await;
    let page = lab.page(&id, Some(5), None).await;
    assert_eq!(page.data.len(), 800_000);
    for typing in page.data.chunks(100_000) {
        assert!(typing.iter().all(|byte| *byte == typing[0]));
    }
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_reads_blocks_nobody() {
    let lab = TerminalFixture::new().await;
    let script = "stty raw -echo; printf ready; exec sleep 100";
    let id = lab.start(&["sh", "-c", script]).await;
    lab.wait_text(&id, "ready").await;
    let began = Instant::now();
    let typing = TerminalInput {
        pieces: vec![InputPiece::Raw(vec![b'x'; 1_000_000])],
        lease: None,
    };
    let me = test_caller();
    let write = lab.engine.send_input(&me, &id, typing);
    let look = async {
        lab.screen(&id).await;
        began.elapsed()
    };
    let (typed, looked) = tokio::join!(write, look);
    let typed = typed.expect("part of it was taken");
    assert_eq!(typed.bytes, 1_000_000);
    assert!(typed.accepted < 100_000, "{typed:?}");
    assert!(began.elapsed() < PATIENCE / 4);
    assert!(looked < began.elapsed());
    let stopped = lab.stop(&id).await;
    assert!(matches!(
        stopped.state.ending.expect("ended").cause,
        TerminationCause::Stopped { .. }
    ));
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_is_refused_before_anything_is_typed() {
    let lab = TerminalFixture::new().await;
    let id = lab.start(&["cat"]).await;
    let most = ostler_engine::terminal::TYPING_BYTES;
    let typing = |bytes| TerminalInput {
        pieces: vec![InputPiece::Raw(vec![b'x'; bytes])],
        lease: None,
    };
    let beyond = error_of(
        lab.engine
            .send_input(&test_caller(), &id, typing(most + 1))
            .await,
    );
    assert_eq!(beyond.code(), ErrorCode::Value);
    lab.type_text(&id, "nothing before\n").await;
    lab.wait_output(&id, "nothing before").await;
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_nowhere() {
    let lab = TerminalFixture::new().await;
    let script = "import getpass; secret = getpass.getpass(); print(len(secret), 'characters')";
    let id = lab.start(&["python3", "-c", script]).await;
    lab.wait_text(&id, "Password:").await;
    let prompt = lab.wait_for(&id, WaitFor::Prompt).await;
    let ostler_engine::WaitEnd::Prompt(prompt) = prompt else {
        panic!("{prompt:?}");
    };
    assert!(prompt.secret);
    lab.type_text(&id, "open-sesame-4711\n").await;
    lab.wait_text(&id, "16 characters").await;
    lab.wait_end(&id).await;
    lab.screen(&id).await;
    lab.engine
        .flushed(&test_caller(), &id)
        .await
        .expect("known");
    let events = lab.engine.events(&test_caller(), &id).expect("readable");
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
    lab.engine.shutdown().await;
    assert_eq!(find_file_with(lab.state.path(), b"open-sesame-4711"), None);
    assert!(find_file_with(lab.state.path(), b"16 characters").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_as_one() {
    let lab = TerminalFixture::new().await;
    let id = lab.start(&["cat"]).await;
    let unknown = error_of(lab.engine.screen(&test_caller(), "0000000000000").await);
    let foreign = error_of(lab.engine.screen(&caller("two"), &id).await);
    let typing = lab.engine.send_input(&caller("two"), &id, text("x")).await;
    for error in [unknown, foreign, error_of(typing)] {
        assert_eq!(error.code(), ErrorCode::SessionNotFound);
        assert_eq!(error.code().info().name, "session_not_found");
        assert_eq!(error.to_string(), "Session not found or access denied");
    }
    let mut pipes = terminal(&["cat"]);
    pipes.pty = None;
    let id = lab.start_request(pipes).await.id.to_string();
    let none = error_of(lab.engine.screen(&test_caller(), &id).await);
    assert!(matches!(none, Error::NoTerminal { .. }));
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_one_of_ours() {
    let lab = TerminalFixture::new().await;
    let print = ["sh", "-c", "echo [$TERM] [$COLUMNS] [$LINES]; stty size"];
    let mut request = terminal(&print);
    request.base_env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("TERM".into(), "vt52".into()),
        ("COLUMNS".into(), "7".into()),
        ("LINES".into(), "7".into()),
    ];
    request.inherit_env = Some(true);
    let id = lab.start_request(request.clone()).await.id.to_string();
    let view = lab.wait_text(&id, "24 80").await;
    assert_eq!(view.rows[0], "[xterm-256color] [] []");
    request.set_env = vec![("TERM".into(), "dumb".into()), ("LINES".into(), "9".into())];
    let id = lab.start_request(request).await.id.to_string();
    let view = lab.wait_text(&id, "24 80").await;
    assert_eq!(view.rows[0], "[dumb] [] [9]");
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_hangs_up() {
    let lab = TerminalFixture::new().await;
    let heard = lab.state.path().join("heard");
    let script = format!(
        "trap 'echo hangup > {}; exit 3' HUP; trap '' TERM; echo ready; while :; do read x; done",
        heard.display()
    );
    let id = lab.start(&["bash", "--norc", "-c", &script]).await;
    lab.wait_text(&id, "ready").await;
    lab.stop(&id).await;
    assert_eq!(
        std::fs::read_to_string(&heard).expect("it heard"),
        "hangup\n"
    );
    // An interactive shell that ignores TERM goes at once.
    let id = lab.start(&["bash", "--norc", "-i"]).await;
    lab.wait_text(&id, "bash-").await;
    let began = Instant::now();
    let request = ostler_engine::StopRequest {
        grace: Some(PATIENCE),
        ..ostler_engine::StopRequest::default()
    };
    lab.engine
        .stop(&test_caller(), &id, request)
        .await
        .expect("stopped");
    assert!(began.elapsed() < PATIENCE / 4);
    lab.engine.shutdown().await;
}
