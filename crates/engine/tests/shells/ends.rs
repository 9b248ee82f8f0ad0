//! How commands end, and what they printed.

use std::path::Path;
use std::time::Duration;

use ostler_engine::ShellEnd;
use ostler_model::{ShellKind, TermSize};

use crate::fixture::{PATIENCE, SOON, ShellFixture, busy_message, test_caller};

in_every_shell! {
    statuses_are_told
    output_is_exact
    directories_are_told
    a_megabyte_is_all_there
    commands_share_the_shell
    what_runs_beside_does_not_hang
    a_stopped_child_gives_the_prompt_back
    time_runs_out_and_it_is_waited_for_again
    an_end_while_it_is_looked_at_is_an_end
    one_at_a_time
    a_new_size_in_the_middle
}

async fn statuses_are_told(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    for (script, status) in [
        ("true", 0),
        ("false", 1),
        ("sh -c 'exit 3'", 3),
        ("no-such-command-here", 127),
        ("sh -c 'kill -TERM $$'", 143),
        ("sh -c 'kill -KILL $$'", 137),
        ("true", 0),
    ] {
        assert_eq!(lab.run_to_end(script).await.0, status, "{kind:?}: {script}");
    }
    if kind != ShellKind::Fish {
        assert_eq!(lab.run_to_end("(exit 3)").await.0, 3);
        assert_eq!(
            lab.run_to_end("# nothing to do").await.0,
            if kind == ShellKind::Zsh { 127 } else { 3 }
        );
    }
    lab.end().await;
}

async fn output_is_exact(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
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
            lab.run_to_end(script).await,
            (0, output.to_owned()),
            "{kind:?}"
        );
    }
    lab.end().await;
}

async fn directories_are_told(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    let home = lab.home.path().to_str().expect("text").to_owned();
    assert_eq!(lab.cwd("true").await, Some(home.clone()));
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
        let change = lab.script_for("cd -P ../next", "cd (realpath ../next)");
        let first = lab.script_for("cd -P next", "cd (realpath next)");
        let at_home = lab.cwd("true").await.as_ref() == Some(&home);
        let script = if at_home { first } else { change };
        assert_eq!(lab.cwd(script).await.as_deref(), path.to_str(), "{kind:?}");
        std::fs::remove_file(Path::new(&home).join("next")).expect("removed");
    }
    lab.end().await;
}

async fn a_megabyte_is_all_there(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    let run = lab.run("head -c 1000000 /dev/zero | tr '\\0' x").await;
    assert!(matches!(run.end, ShellEnd::Finished { status: 0, .. }));
    assert_eq!(run.to - run.from, 1_000_000, "{kind:?}");
    assert_eq!(lab.run_to_end("echo after").await.1, "after\r\n");
    lab.end().await;
}

async fn commands_share_the_shell(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    lab.run_to_end(lab.script_for("x='a b'", "set x 'a b'"))
        .await;
    assert_eq!(lab.run_to_end("echo \"$x\"").await.1, "a b\r\n");
    lab.run_to_end("alias hey='echo ho'").await;
    assert_eq!(lab.run_to_end("hey you").await.1, "ho you\r\n");
    lab.run_to_end(lab.script_for(
        "f() { echo \"f:$1\"; return 4; }",
        "function f; echo \"f:$argv[1]\"; return 4; end",
    ))
    .await;
    assert_eq!(lab.run_to_end("f 1").await, (4, "f:1\r\n".to_owned()));
    let status = lab.script_for("echo $?", "echo $status");
    assert_eq!(lab.run_to_end(status).await.1, "4\r\n");
    if kind != ShellKind::Fish {
        // As a person would have it.
        assert_eq!(lab.run_to_end("!!; true").await.0, 0);
        let failed = lab.run("echo \"!nothing-like-that\"").await;
        assert!(lab.output(&failed).await.contains("event not found"));
        match failed.end {
            ShellEnd::Finished { status, .. } => assert!(kind == ShellKind::Zsh && status != 0),
            end => assert_eq!((kind, end), (ShellKind::Bash, ShellEnd::NoMarker)),
        }
        assert_eq!(lab.run_to_end("echo 'no!'").await.1, "no!\r\n");
    }
    lab.end().await;
}

async fn what_runs_beside_does_not_hang(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    assert_eq!(lab.run_to_end("sleep 100 &").await.0, 0);
    assert_eq!(lab.run_to_end("echo next").await.1, "next\r\n");
    assert_eq!(
        lab.run_to_end(lab.script_for("kill %1; wait", "kill %1; wait"))
            .await
            .0,
        0
    );
    lab.end().await;
}

async fn a_stopped_child_gives_the_prompt_back(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    let stopped = lab.run("sh -c 'kill -TSTP $$'").await;
    let ShellEnd::Finished { status, .. } = stopped.end else {
        panic!("{kind:?}: {:?}", stopped.end);
    };
    assert!(
        kind == ShellKind::Fish || status == 148,
        "{kind:?}: {status}"
    );
    assert_eq!(lab.run_to_end("echo next").await.1, "next\r\n");
    let run = lab.run_for("sleep 100", 5 * SOON).await.expect("typed");
    assert_eq!(run.end, ShellEnd::TimedOut);
    lab.type_in("\x1a").await;
    let run = lab
        .engine
        .wait_in_shell(&test_caller(), &lab.id, run.from, PATIENCE)
        .await
        .expect("known");
    assert!(
        matches!(run.end, ShellEnd::Finished { .. }),
        "{kind:?}: {:?}",
        run.end
    );
    lab.end().await;
}

async fn time_runs_out_and_it_is_waited_for_again(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    let run = lab
        .run_for("echo begun; sleep 2; echo ended", Duration::from_secs(1))
        .await;
    let run = run.expect("typed");
    assert_eq!(run.end, ShellEnd::TimedOut);
    assert_eq!(lab.output(&run).await, "begun\r\n");
    let reason = busy_message(lab.run_for("true", PATIENCE).await);
    assert!(reason.starts_with("it runs sleep (process "), "{reason}");
    let run = lab
        .engine
        .wait_in_shell(&test_caller(), &lab.id, run.from, PATIENCE)
        .await
        .expect("known");
    assert!(
        matches!(run.end, ShellEnd::Finished { status: 0, .. }),
        "{kind:?}: {:?} with {:?}",
        run.end,
        lab.output(&run).await
    );
    assert_eq!(lab.output(&run).await, "begun\r\nended\r\n");
    lab.end().await;
}

/// A silent shell is looked at after 150 and 450 ms: these end about then.
async fn an_end_while_it_is_looked_at_is_an_end(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    lab.run_to_end("true").await;
    for ms in (130..=150).chain(430..=450) {
        let script = format!("sleep 0.{ms}; echo ended");
        assert_eq!(lab.run_to_end(&script).await, (0, "ended\r\n".to_owned()));
    }
    lab.end().await;
}

async fn one_at_a_time(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    lab.run_to_end("true").await;
    let first = lab.run("sleep 1; echo first");
    let second = async {
        let started = ostler_engine::WaitFor::OutputAfter(
            lab.engine
                .info(&test_caller(), &lab.id)
                .expect("known")
                .cursor(),
        );
        lab.engine
            .wait(&test_caller(), &lab.id, &started, Some(PATIENCE))
            .await
            .expect("known");
        busy_message(lab.run_for("echo second", PATIENCE).await)
    };
    let (first, reason) = tokio::join!(first, second);
    assert_eq!(reason, "it runs 'sleep 1; echo first'");
    assert_eq!(lab.output(&first).await, "first\r\n");
    lab.end().await;
}

async fn a_new_size_in_the_middle(kind: ShellKind) {
    let lab = ShellFixture::new(kind).await;
    lab.run_to_end("true").await;
    let resized = async {
        for cols in [40, 132, 61] {
            let size = TermSize { cols, rows: 30 };
            lab.engine
                .resize(&test_caller(), &lab.id, size)
                .await
                .expect("resized");
        }
    };
    let (run, ()) = tokio::join!(lab.run("sleep 1; echo done"), resized);
    assert!(matches!(run.end, ShellEnd::Finished { status: 0, .. }));
    assert_eq!(lab.output(&run).await, "done\r\n");
    assert_eq!(lab.run_to_end("stty size").await.1, "30 61\r\n");
    lab.end().await;
}
