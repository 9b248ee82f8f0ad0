//! Scripts that can be typed, and how shells run them.

use ostler_engine::{Error, ShellEnd};
use ostler_model::ShellKind;
use tempfile::TempDir;

use super::fixture::{SOON, ShellFixture, busy_message};
use crate::test_engine::{PATIENCE, test_caller};

in_every_shell! {
    scripts_of_any_shape
    it_wants_more
    what_it_cannot_read_is_over
    what_was_typed_at_the_prompt_is_no_part_of_a_script
    what_a_command_did_not_read_is_no_part_of_the_next
    vi_keys_do_no_harm
    long_lines_wrap_as_they_should
    a_terminal_that_can_nothing
    the_longest_script
}

async fn scripts_of_any_shape(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let (status, output) = fixture.run_to_end("echo one\nfalse\necho 'two  2'\n").await;
    assert_eq!((status, output.as_str()), (0, "one\r\ntwo  2\r\n"));
    let (status, output) = fixture.run_to_end("echo one\nfalse").await;
    assert_eq!((status, output.as_str()), (1, "one\r\n"), "{kind:?}");
    let loops = fixture.script_for(
        "for i in 1 2; do\n\techo \"i=$i\"\ndone",
        "for i in 1 2\n\techo \"i=$i\"\nend",
    );
    assert_eq!(fixture.run_to_end(loops).await.1, "i=1\r\ni=2\r\n");
    if kind != ShellKind::Fish {
        let document = "cat <<'END'\n\ta $b `c`\n\n  d\nEND\necho after";
        assert_eq!(
            fixture.run_to_end(document).await.1,
            "        a $b `c`\r\n\r\n  d\r\nafter\r\n".replace("        ", "\t")
        );
    }
    // A tab is typed literally at every position.
    assert_eq!(
        fixture.run_to_end("printf '%s|' a\tb '\tc'").await.1,
        "a|b|\tc|"
    );
    assert_eq!(
        fixture.run_to_end("echo 'ä 漢字 🦀 é'").await.1,
        "ä 漢字 🦀 é\r\n"
    );
    assert_eq!(
        fixture.run_to_end("echo 'it'\\''s' \"q\"").await.1,
        "it's q\r\n"
    );
    let lines: Vec<String> = (0..500).map(|n| format!("echo line {n:05}")).collect();
    let long = lines.join("\n");
    assert!(long.len() > 7_500);
    let (status, output) = fixture.run_to_end(&long).await;
    assert_eq!((status, output.lines().count()), (0, 500), "{kind:?}");
    assert!(output.ends_with("line 00499\r\n"));
    let wide = format!("echo {}", "x".repeat(10_240));
    assert_eq!(
        fixture.run_to_end(&wide).await.1,
        format!("{}\r\n", "x".repeat(10_240))
    );
    fixture.end().await;
}

async fn it_wants_more(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let open = fixture.script_for("for i in 1 2; do", "for i in 1 2");
    for script in ["echo 'open", open, "echo a\necho \"b"] {
        assert_eq!(
            fixture.run_end(script).await,
            ShellEnd::Incomplete,
            "{kind:?}: {script}"
        );
        if kind != ShellKind::Fish {
            let reason = busy_message(fixture.run_for("true", SOON).await);
            assert_eq!(reason, "it waits for the rest of a command");
        }
        let (status, output) = given_up(&fixture, "echo fine").await;
        assert_eq!(
            (status, output.as_str()),
            (0, "fine\r\n"),
            "{kind:?}: {script}"
        );
    }
    fixture.end().await;
}

/// Interrupts the script at the prompt, and returns when the shell accepts commands again. Fish
/// ignores ctrl-c while it redraws: it is typed again.
async fn given_up(fixture: &ShellFixture, script: &str) -> (i32, String) {
    let mut watch = fixture
        .engine
        .watch(&test_caller(), &fixture.id)
        .expect("known");
    fixture.type_in("\x03").await;
    let tries = async {
        loop {
            match fixture.run_for(script, PATIENCE).await {
                Ok(run) => break run,
                Err(Error::ShellBusy { .. }) => {
                    let changed = tokio::time::timeout(SOON, watch.changed()).await;
                    if changed.is_err() {
                        fixture.type_in("\x03").await;
                    }
                    watch.refresh();
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    let run = tokio::time::timeout(PATIENCE, tries).await;
    let run = run.expect("in time");
    let output = fixture.output(&run).await;
    match run.end {
        ShellEnd::Finished { status, .. } => (status, output),
        other => panic!("{other:?} {output:?}"),
    }
}

async fn what_it_cannot_read_is_over(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    if kind == ShellKind::Bash {
        assert_eq!(fixture.run_to_end("# nothing").await, (0, String::new()));
        assert_eq!(fixture.run_to_end("").await, (0, String::new()));
    }
    let (status, output) = fixture.run_to_end(")").await;
    let echo = output.starts_with(')');
    assert!(kind == ShellKind::Fish || !echo, "{kind:?}: {output:?}");
    assert_ne!(status, 0);
    assert!(
        output.contains("fish:") || output.contains("error"),
        "{output:?}"
    );
    assert_eq!(
        fixture.run_to_end("echo fine").await,
        (0, "fine\r\n".to_owned())
    );
    assert!(matches!(
        fixture.run_for("a\x03b", PATIENCE).await,
        Err(Error::Argument(_))
    ));
    fixture.end().await;
}

async fn what_was_typed_at_the_prompt_is_no_part_of_a_script(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    fixture.run_to_end("true").await;
    fixture.type_in("echo half").await;
    fixture.wait_output("echo half").await;
    assert_eq!(
        fixture.run_to_end("echo whole").await,
        (0, "whole\r\n".to_owned())
    );
    assert_eq!(
        fixture.run_to_end("echo again").await,
        (0, "again\r\n".to_owned())
    );
    fixture.end().await;
}

/// Keys typed meanwhile, and the replies to its queries of the terminal.
async fn what_a_command_did_not_read_is_no_part_of_the_next(kind: ShellKind) {
    let vi = match kind {
        ShellKind::Bash => "set -o vi",
        ShellKind::Zsh => "bindkey -v",
        ShellKind::Fish => "true",
    };
    let whole = (0, "whole\r\n".to_owned());
    for rc in ["true", vi] {
        let fixture = ShellFixture::with_rc(kind, rc).await;
        // It runs until the keys are typed, however long that takes.
        let first = fixture.run("echo be''gun; sh -c 'until [ -e typed ]; do sleep 0.1; done'");
        let (first, ()) = tokio::join!(first, async {
            fixture.wait_output("begun").await;
            fixture.type_in("rm -rf ").await;
            std::fs::write(fixture.home.path().join("typed"), "").expect("written");
        });
        assert!(
            matches!(first.end, ShellEnd::Finished { status: 0, .. }),
            "{rc}: {:?}",
            first.end
        );
        for _ in 0..2 {
            assert_eq!(fixture.run_to_end("echo whole").await, whole, "{rc}");
        }
        fixture.end().await;
    }
    let fixture = ShellFixture::new(kind).await;
    for query in ["printf '\\033[6n'", "printf '\\033[c'; true"] {
        fixture.run_to_end(query).await;
        assert_eq!(fixture.run_to_end("echo whole").await, whole, "{query}");
    }
    fixture.end().await;
}

async fn vi_keys_do_no_harm(kind: ShellKind) {
    let rc = match kind {
        ShellKind::Bash => "set -o vi",
        ShellKind::Zsh => "bindkey -v",
        ShellKind::Fish => "fish_vi_key_bindings",
    };
    let fixture = ShellFixture::with_rc(kind, rc).await;
    let script = "echo one\n\ttrue\necho 'two\tthree'";
    let output = "one\r\ntwo\tthree\r\n".to_owned();
    for _ in 0..3 {
        assert_eq!(
            fixture.run_to_end(script).await,
            (0, output.clone()),
            "{kind:?}"
        );
    }
    fixture.end().await;
}

/// The marks have no width: a line editor that thought so would wrap too early.
async fn long_lines_wrap_as_they_should(kind: ShellKind) {
    let rc = match kind {
        ShellKind::Bash | ShellKind::Zsh => "PS1='P> '",
        ShellKind::Fish => "function fish_prompt; echo -n 'P> '; end; set -g fish_greeting",
    };
    let fixture = ShellFixture::with_rc(kind, rc).await;
    fixture.run_to_end("clear").await;
    fixture.type_in(&"x".repeat(100)).await;
    fixture.wait_output(&"x".repeat(23)).await;
    fixture.type_in("\x01y").await;
    fixture.wait_output("P> yxx").await;
    let rows = [format!("P> y{}", "x".repeat(76)), "x".repeat(24)];
    fixture.wait_output(&rows.join("\n")).await;
    fixture.end().await;
}

async fn a_terminal_that_can_nothing(kind: ShellKind) {
    let home = TempDir::new().expect("a directory");
    let fixture = ShellFixture::with_home(kind, home, vec![("TERM".into(), "dumb".into())]).await;
    assert_eq!(
        fixture.run_to_end("printf '%s|' 'a\tb'").await,
        (0, "a\tb|".to_owned())
    );
    let run = fixture.run("echo one\necho two\nsh -c 'exit 3'").await;
    assert!(
        matches!(run.end, ShellEnd::Finished { status: 3, .. }),
        "{:?}",
        run.end
    );
    let output = fixture.output(&run).await;
    assert!(
        output.contains("one\r\n") && output.contains("two\r\n"),
        "{output:?}"
    );
    fixture.end().await;
}

async fn the_longest_script(kind: ShellKind) {
    const LINES: usize = 100;
    // Fish redraws everything for every word.
    let bytes = if kind == ShellKind::Fish { 8 } else { 120 } * 1024;
    let fixture = ShellFixture::new(kind).await;
    let line = format!("echo {}", "x".repeat(bytes / LINES));
    let script = vec![line; LINES].join("\n");
    let (status, output) = fixture.run_to_end(&script).await;
    assert_eq!(
        (status, output.len()),
        (0, LINES * (bytes / LINES + 2)),
        "{kind:?}"
    );
    fixture.end().await;
}
