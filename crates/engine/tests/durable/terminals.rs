//! Terminal sessions over the end of an engine.

use libtest_mimic::Trial;
use ostler_engine::{Engine, Error, TerminalInput, WaitEnd, WaitFor};
use ostler_model::{Cursor, Event, TermSize};
use ostler_terminal::{InputPiece, ScreenSnapshot};
use tempfile::TempDir;

use super::{PATIENCE, block, open, test_caller};

const WIDE: TermSize = TermSize {
    cols: 100,
    rows: 30,
};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("vim_goes_on_with_the_same_screen", || {
            block(vim_goes_on_with_the_same_screen())
        }),
        Trial::test("an_ended_screen_is_there_after_a_restart", || {
            block(an_ended_screen_is_there_after_a_restart())
        }),
        Trial::test("a_lease_is_reserved_by_the_next_engine", || {
            block(a_lease_is_reserved_by_the_next_engine())
        }),
    ]
}

async fn start(engine: &Engine, words: &[&str]) -> String {
    let mut request = ostler_engine::StartRequest::argv(words.iter().copied(), "/tmp");
    request.options.pty = Some(TermSize { cols: 80, rows: 24 });
    request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let info = engine
        .start(&test_caller(), request)
        .await
        .expect("started");
    info.id.to_string()
}

async fn type_keys(engine: &Engine, id: &str, pieces: Vec<InputPiece>) {
    let typing = TerminalInput {
        pieces,
        lease: None,
    };
    engine
        .send_input(&test_caller(), id, typing)
        .await
        .expect("typed");
}

fn text(text: &str) -> Vec<InputPiece> {
    vec![InputPiece::Text(text.to_owned())]
}

/// The first screen that is so.
async fn wait_screen(
    engine: &Engine,
    id: &str,
    condition: impl Fn(&ScreenSnapshot) -> bool,
) -> ScreenSnapshot {
    let mut watch = engine.watch(&test_caller(), id).expect("known");
    let seen = async {
        loop {
            watch.refresh();
            let view = engine.screen(&test_caller(), id).await.expect("a screen");
            if condition(&view) {
                return view;
            }
            watch.changed().await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("soon")
}

async fn vim_goes_on_with_the_same_screen() {
    let state = TempDir::new().expect("a directory");
    let file = state.path().join("file.txt");
    std::fs::write(&file, "first\nsecond\n").expect("room");
    let engine = open(state.path()).await;
    let name = file.to_str().expect("a name");
    let vim = ["vim", "-u", "NONE", "-N", "-n", "-i", "NONE", name];
    let id = start(&engine, &vim).await;
    wait_screen(&engine, &id, |view| view.rows[1] == "second").await;
    // While it starts, vim may miss a new size; what answers a command has started.
    type_keys(&engine, &id, text(":echo 'started'\n")).await;
    wait_screen(&engine, &id, |view| view.rows[23] == "started").await;
    engine
        .resize(&test_caller(), &id, WIDE)
        .await
        .expect("resized");
    // The last line of a screen that vim has redrawn.
    wait_screen(&engine, &id, |view| view.rows[28] == "~").await;
    type_keys(&engine, &id, text("ithird ")).await;
    let before = wait_screen(&engine, &id, |view| {
        view.rows[0] == "third first" && view.rows[29].contains("INSERT")
    })
    .await;
    assert!(before.alternate);
    engine.shutdown().await;
    drop(engine);

    let engine = open(state.path()).await;
    let info = engine.info(&test_caller(), &id).expect("known");
    assert_eq!((info.size(), info.state.adoptions), (Some(WIDE), 1));
    let after = wait_screen(&engine, &id, |_| true).await;
    assert_eq!(after, before);
    let escape = InputPiece::Key("escape".parse().expect("a key"));
    type_keys(&engine, &id, vec![escape]).await;
    type_keys(&engine, &id, text(":wq\n")).await;
    let exit = engine
        .wait(&test_caller(), &id, &WaitFor::Exit, Some(PATIENCE))
        .await;
    assert_eq!(exit.expect("known").end, WaitEnd::Exit);
    let saved = std::fs::read_to_string(&file).expect("saved");
    assert_eq!(saved, "third first\nsecond\n");
    engine.shutdown().await;
}

async fn an_ended_screen_is_there_after_a_restart() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    // Enough to be compressed, and a size in the middle of it.
    let script = "seq 400000; printf '\\nsized? '; read x; stty size; seq 20; exit 3";
    let id = start(&engine, &["bash", "--norc", "-c", script]).await;
    wait_screen(&engine, &id, |view| view.text().contains("sized?")).await;
    engine
        .resize(&test_caller(), &id, WIDE)
        .await
        .expect("resized");
    type_keys(&engine, &id, text("\n")).await;
    let exit = engine
        .wait(&test_caller(), &id, &WaitFor::Exit, Some(PATIENCE))
        .await;
    let end = exit.expect("known").info.output_end;
    let before = engine.screen(&test_caller(), &id).await.expect("a screen");
    assert_eq!((before.offset, before.exact), (end, true));
    assert!(before.rows.contains(&"30 100".to_owned()), "{before:#?}");
    engine.flushed(&test_caller(), &id).await.expect("known");
    engine.shutdown().await;
    drop(engine);

    let dir = state.path().join("executions").join(&id);
    let names = || -> Vec<String> {
        let files = std::fs::read_dir(&dir).expect("there");
        let name = |file: std::io::Result<std::fs::DirEntry>| file.expect("there").file_name();
        files
            .map(|it| name(it).into_string().expect("a name"))
            .collect()
    };
    assert!(
        names().contains(&"screen".to_owned()),
        "it took long to parse"
    );
    for round in 0..2 {
        let engine = open(state.path()).await;
        assert_eq!(
            engine.screen(&test_caller(), &id).await.expect("a screen"),
            before,
            "round {round}"
        );
        let from = Cursor {
            offset: end,
            event: 0,
        };
        let mut events = engine
            .terminal_events(&test_caller(), &id, from)
            .expect("known");
        let exit = events.next().await.expect("readable");
        assert!(
            matches!(&exit, Some(ostler_engine::TerminalEvent::Exit(it)) if it.code == Some(3)),
            "{exit:?}"
        );
        // Compression continues after a response, and stops with the engine.
        let packed = async {
            let mut every = tokio::time::interval(std::time::Duration::from_millis(5));
            while !names().iter().any(|name| name.ends_with(".zst")) {
                every.tick().await;
            }
        };
        tokio::time::timeout(PATIENCE, packed).await.expect("soon");
        engine.shutdown().await;
        drop(engine);
        // The second time, without a checkpoint: from the compressed journal.
        drop(std::fs::remove_file(dir.join("screen")));
    }
}

async fn a_lease_is_reserved_by_the_next_engine() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let id = start(&engine, &["cat"]).await;
    let mut notices = engine.subscribe();
    let lease = engine
        .acquire_lease(&test_caller(), &id, "somebody", false)
        .await;
    let lease = lease.expect("free");
    let actual = async {
        while !matches!(
            notices.recv().await.expect("told").record.event,
            Event::LeaseTaken { .. }
        ) {}
    };
    tokio::time::timeout(PATIENCE, actual).await.expect("soon");
    engine.shutdown().await;
    drop(lease);
    drop(engine);

    let engine = open(state.path()).await;
    let typing = TerminalInput {
        pieces: text("too early\n"),
        lease: None,
    };
    let typed = engine.send_input(&test_caller(), &id, typing).await;
    assert!(matches!(typed, Err(Error::Leased { .. })), "{typed:?}");
    let lease = engine
        .acquire_lease(&test_caller(), &id, "somebody", false)
        .await;
    drop(lease.expect("it is theirs"));
    type_keys(&engine, &id, text("free\n")).await;
    wait_screen(&engine, &id, |view| view.text().contains("free")).await;
    engine
        .stop(&test_caller(), &id, ostler_engine::StopRequest::default())
        .await
        .expect("stopped");
    engine.flushed(&test_caller(), &id).await.expect("known");
    let events = engine.events(&test_caller(), &id).expect("readable");
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
    engine.shutdown().await;
}
