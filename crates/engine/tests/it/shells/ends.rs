//! Ends of commands, and their output.

use std::path::Path;
use std::time::Duration;

use ostler_engine::ShellEnd;
use ostler_model::{ShellKind, TermSize};

use super::fixture::{SOON, ShellFixture, busy_message};
use crate::test_engine::{PATIENCE, test_caller};

in_every_shell! {
    statuses_are_reported
    output_is_exact
    directories_are_reported
    a_megabyte_is_all_there
    commands_share_the_shell
    what_runs_beside_does_not_hang
    a_stopped_child_gives_the_prompt_back
    time_runs_out_and_it_is_waited_for_again
    an_end_while_it_is_looked_at_is_an_end
    one_at_a_time
    a_new_size_in_the_middle
}

async fn statuses_are_reported(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    for (script, status) in [
        ("true", 0),
        ("false", 1),
        ("sh -c 'exit 3'", 3),
        ("no-such-command-here", 127),
        ("sh -c 'kill -TERM $$'", 143),
        ("sh -c 'kill -KILL $$'", 137),
        ("true", 0),
    ] {
        assert_eq!(
            fixture.run_to_end(script).await.0,
            status,
            "{kind:?}: {script}"
        );
    }
    if kind != ShellKind::Fish {
        assert_eq!(fixture.run_to_end("(exit 3)").await.0, 3);
        assert_eq!(
            fixture.run_to_end("# nothing to do").await.0,
            if kind == ShellKind::Zsh { 127 } else { 3 }
        );
    }
    fixture.end().await;
}

async fn output_is_exact(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    for (script, output) in [
        ("echo one; echo two", "one\r\ntwo\r\n"),
        ("printf 'no newline'", "no newline"),
        ("true", ""),
        ("printf '\\n'", "\r\n"),
        ("printf '\\033[31mred\\033[0m'", "\x1b[31mred\x1b[0m"),
        ("sh -c 'echo out; echo err >&2'", "out\r\nerr\r\n"),
        ("printf ' \\r'", " \r"),
    ] {
        assert_eq!(
            fixture.run_to_end(script).await,
            (0, output.to_owned()),
            "{kind:?}"
        );
    }
    fixture.end().await;
}

async fn directories_are_reported(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let home = fixture.home.path().to_str().expect("text").to_owned();
    assert_eq!(fixture.cwd("true").await, Some(home.clone()));
    for name in [
        "a b",
        "ä 漢 🦀",
        "%41;x=\u{7f}é",
        "tab\there",
        "don't \"$HOME\"\\",
        "*[x]?~",
    ] {
        let path = Path::new(&home).join(name);
        std::fs::create_dir(&path).expect("made");
        std::os::unix::fs::symlink(&path, Path::new(&home).join("next")).expect("linked");
        let change = fixture.script_for("cd -P ../next", "cd (realpath ../next)");
        let first = fixture.script_for("cd -P next", "cd (realpath next)");
        let at_home = fixture.cwd("true").await.as_ref() == Some(&home);
        let script = if at_home { first } else { change };
        assert_eq!(
            fixture.cwd(script).await.as_deref(),
            path.to_str(),
            "{kind:?}"
        );
        std::fs::remove_file(Path::new(&home).join("next")).expect("removed");
    }
    fixture.end().await;
}

async fn a_megabyte_is_all_there(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let run = fixture.run("head -c 1000000 /dev/zero | tr '\\0' x").await;
    assert!(matches!(run.end, ShellEnd::Finished { status: 0, .. }));
    assert_eq!(run.to - run.from, 1_000_000, "{kind:?}");
    assert_eq!(fixture.run_to_end("echo after").await.1, "after\r\n");
    fixture.end().await;
}

async fn commands_share_the_shell(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    fixture
        .run_to_end(fixture.script_for("x='a b'", "set x 'a b'"))
        .await;
    assert_eq!(fixture.run_to_end("echo \"$x\"").await.1, "a b\r\n");
    fixture.run_to_end("alias hey='echo ho'").await;
    assert_eq!(fixture.run_to_end("hey you").await.1, "ho you\r\n");
    fixture
        .run_to_end(fixture.script_for(
            "f() { echo \"f:$1\"; return 4; }",
            "function f; echo \"f:$argv[1]\"; return 4; end",
        ))
        .await;
    assert_eq!(fixture.run_to_end("f 1").await, (4, "f:1\r\n".to_owned()));
    let status = fixture.script_for("echo $?", "echo $status");
    assert_eq!(fixture.run_to_end(status).await.1, "4\r\n");
    if kind != ShellKind::Fish {
        // As a person would have it.
        assert_eq!(fixture.run_to_end("!!; true").await.0, 0);
        let failed = fixture.run("echo \"!nothing-like-that\"").await;
        assert!(fixture.output(&failed).await.contains("event not found"));
        match failed.end {
            ShellEnd::Finished { status, .. } => assert!(kind == ShellKind::Zsh && status != 0),
            end => assert_eq!((kind, end), (ShellKind::Bash, ShellEnd::NoMarker)),
        }
        assert_eq!(fixture.run_to_end("echo 'no!'").await.1, "no!\r\n");
    }
    fixture.end().await;
}

async fn what_runs_beside_does_not_hang(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    assert_eq!(fixture.run_to_end("sleep 100 &").await.0, 0);
    assert_eq!(fixture.run_to_end("echo next").await.1, "next\r\n");
    assert_eq!(
        fixture
            .run_to_end(fixture.script_for("kill %1; wait", "kill %1; wait"))
            .await
            .0,
        0
    );
    fixture.end().await;
}

async fn a_stopped_child_gives_the_prompt_back(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let stopped = fixture.run("sh -c 'kill -TSTP $$'").await;
    let ShellEnd::Finished { status, .. } = stopped.end else {
        panic!("{kind:?}: {:?}", stopped.end);
    };
    assert!(
        kind == ShellKind::Fish || status == 148,
        "{kind:?}: {status}"
    );
    assert_eq!(fixture.run_to_end("echo next").await.1, "next\r\n");
    let run = fixture.run_for("sleep 100", 5 * SOON).await.expect("typed");
    assert_eq!(run.end, ShellEnd::TimedOut);
    fixture.type_in("\x1a").await;
    let run = fixture
        .engine
        .wait_in_shell(&test_caller(), &fixture.id, run.from, PATIENCE)
        .await
        .expect("known");
    assert!(
        matches!(run.end, ShellEnd::Finished { .. }),
        "{kind:?}: {:?}",
        run.end
    );
    fixture.end().await;
}

async fn time_runs_out_and_it_is_waited_for_again(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    // The time for a command includes the wait for the first prompt.
    fixture.run_to_end("true").await;
    let run = fixture
        .run_for("echo begun; sleep 4; echo ended", Duration::from_secs(2))
        .await;
    let run = run.expect("typed");
    assert_eq!(run.end, ShellEnd::TimedOut);
    assert_eq!(fixture.output(&run).await, "begun\r\n");
    let reason = busy_message(fixture.run_for("true", PATIENCE).await);
    assert!(reason.starts_with("it runs sleep (process "), "{reason}");
    let run = fixture
        .engine
        .wait_in_shell(&test_caller(), &fixture.id, run.from, PATIENCE)
        .await
        .expect("known");
    assert!(
        matches!(run.end, ShellEnd::Finished { status: 0, .. }),
        "{kind:?}: {:?} with {:?}",
        run.end,
        fixture.output(&run).await
    );
    assert_eq!(fixture.output(&run).await, "begun\r\nended\r\n");
    fixture.end().await;
}

/// A silent shell is inspected after 150 and 450 ms: these commands end about then.
async fn an_end_while_it_is_looked_at_is_an_end(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    fixture.run_to_end("true").await;
    for ms in (130..=150).chain(430..=450) {
        let script = format!("sleep 0.{ms}; echo ended");
        assert_eq!(
            fixture.run_to_end(&script).await,
            (0, "ended\r\n".to_owned())
        );
    }
    fixture.end().await;
}

async fn one_at_a_time(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    fixture.run_to_end("true").await;
    let first = fixture.run("sleep 1; echo first");
    let second = async {
        let started = ostler_engine::WaitFor::OutputAfter(
            fixture
                .engine
                .info(&test_caller(), &fixture.id)
                .expect("known")
                .cursor(),
        );
        fixture
            .engine
            .wait(&test_caller(), &fixture.id, &started, Some(PATIENCE))
            .await
            .expect("known");
        busy_message(fixture.run_for("echo second", PATIENCE).await)
    };
    let (first, reason) = tokio::join!(first, second);
    assert_eq!(reason, "it runs 'sleep 1; echo first'");
    assert_eq!(fixture.output(&first).await, "first\r\n");
    fixture.end().await;
}

async fn a_new_size_in_the_middle(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    fixture.run_to_end("true").await;
    let resized = async {
        for cols in [40, 132, 61] {
            let size = TermSize { cols, rows: 30 };
            fixture
                .engine
                .resize(&test_caller(), &fixture.id, size)
                .await
                .expect("resized");
        }
    };
    let (run, ()) = tokio::join!(fixture.run("sleep 1; echo done"), resized);
    assert!(matches!(run.end, ShellEnd::Finished { status: 0, .. }));
    assert_eq!(fixture.output(&run).await, "done\r\n");
    assert_eq!(fixture.run_to_end("stty size").await.1, "30 61\r\n");
    fixture.end().await;
}
