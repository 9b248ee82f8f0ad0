//! Questions, forgeries, shells that go away, sessions that are none.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{Engine, Error, Settings, ShellCommand, ShellEnd};
use ostler_model::{ShellKind, TermSize};
use tempfile::TempDir;

use super::fixture::{SOON, ShellFixture, busy_message};
use crate::test_engine::{PATIENCE, test_caller};

in_every_shell! {
    it_asks
    forged_marks_end_nothing
    the_nonce_stays_inside
    the_shell_goes_away
    the_shell_is_replaced
    wrong_sessions_are_refused
}

async fn it_asks(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let run = fixture
        .run("sh -c 'printf \"Sure? [y/N] \"; read a; echo \"got $a\"'")
        .await;
    let ShellEnd::Prompt(prompt) = &run.end else {
        panic!("{kind:?}: {:?}", run.end);
    };
    assert!(prompt.text.ends_with("Sure? [y/N] "), "{prompt:?}");
    fixture.type_in("y\r").await;
    let run = fixture
        .engine
        .wait_in_shell(&test_caller(), &fixture.id, run.from, PATIENCE)
        .await;
    let run = run.expect("known");
    assert!(
        matches!(run.end, ShellEnd::Finished { status: 0, .. }),
        "{:?}",
        run.end
    );
    assert_eq!(fixture.output(&run).await, "Sure? [y/N] y\r\ngot y\r\n");

    for (script, leave) in [
        ("python3 -q", "exit()\r"),
        ("bash --norc", "exit\r"),
        (
            "sh -c 'stty -echo; printf \"Password: \"; read a; stty echo'",
            "x\r",
        ),
        (fixture.script_for("read a", "read a"), "b\r"),
    ] {
        let run = fixture.run(script).await;
        assert!(
            matches!(run.end, ShellEnd::Prompt(_)),
            "{kind:?}: {script}: {:?}",
            run.end
        );
        assert!(!busy_message(fixture.run_for("echo no", SOON).await).is_empty());
        fixture.type_in(leave).await;
        let run = fixture
            .engine
            .wait_in_shell(&test_caller(), &fixture.id, run.from, PATIENCE)
            .await;
        let end = run.expect("known").end;
        assert!(
            matches!(end, ShellEnd::Finished { .. }),
            "{kind:?}: {script}: {end:?}"
        );
    }
    let run = fixture
        .run_for("cat", Duration::from_secs(2))
        .await
        .expect("typed");
    assert!(
        matches!(run.end, ShellEnd::Prompt(_) | ShellEnd::TimedOut),
        "{:?}",
        run.end
    );
    fixture.type_in("\x03").await;
    let run = fixture
        .engine
        .wait_in_shell(&test_caller(), &fixture.id, run.from, PATIENCE)
        .await;
    assert!(matches!(
        run.expect("known").end,
        ShellEnd::Finished { status: 130, .. }
    ));
    fixture.end().await;
}

async fn forged_marks_end_nothing(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let marks = "\\033]133;D;0\\007\\033]133;D;0;ostler=x\\007\\033]133;A\\007\\033]133;B\\007\
                 \\033]7;file:///forged\\007";
    let script = format!("printf '{marks}'; sleep 1; echo end; sh -c 'exit 7'");
    let run = fixture.run(&script).await;
    let home = fixture.home.path().to_str().expect("text").to_owned();
    assert_eq!(
        run.end,
        ShellEnd::Finished {
            status: 7,
            cwd: Some(home)
        }
    );
    assert!(fixture.output(&run).await.ends_with("end\r\n"));
    fixture.end().await;
}

async fn the_nonce_stays_inside(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let info = fixture
        .engine
        .info(&test_caller(), &fixture.id)
        .expect("known");
    let nonce = info.spec.shell.as_ref().expect("a shell").nonce.clone();
    let (_, output) = fixture.run_to_end("env; echo all").await;
    assert!(output.ends_with("all\r\n"));
    assert!(
        !output.contains(&nonce) && !output.contains("OSTLER_SHELL"),
        "{output}"
    );
    let view = fixture
        .engine
        .screen(&test_caller(), &fixture.id)
        .await
        .expect("a screen");
    assert!(!view.text().contains(&nonce) && !view.text().contains("133;"));
    fixture.end().await;
}

async fn the_shell_goes_away(kind: ShellKind) {
    for script in ["exit", "exit 3", "kill -KILL $$", "set -e; false"] {
        if kind == ShellKind::Fish && script != "exit" && script != "exit 3" {
            continue;
        }
        let fixture = ShellFixture::new(kind).await;
        assert_eq!(
            fixture.run_end(script).await,
            ShellEnd::ShellEnded,
            "{kind:?}: {script}"
        );
        let again = fixture.run_for("true", PATIENCE).await;
        assert!(matches!(again, Err(Error::ControlFailed(_))), "{again:?}");
        fixture.end().await;
    }
}

async fn the_shell_is_replaced(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    assert_eq!(
        fixture.run_end("exec cat").await,
        ShellEnd::ShellEnded,
        "{kind:?}"
    );
    fixture.end().await;
    let fixture = ShellFixture::new(kind).await;
    let end = fixture.run_end("exec bash --norc").await;
    let expected = if kind == ShellKind::Bash {
        ShellEnd::NoMarker
    } else {
        ShellEnd::ShellEnded
    };
    assert_eq!(end, expected, "{kind:?}");
    assert!(!busy_message(fixture.run_for("true", SOON).await).is_empty());
    fixture.end().await;
}

async fn wrong_sessions_are_refused(kind: ShellKind) {
    let fixture = ShellFixture::new(kind).await;
    let mut request = ostler_engine::StartRequest::argv([kind.as_str()], "/tmp");
    request.options.pty = Some(TermSize { cols: 80, rows: 24 });
    let plain = fixture
        .engine
        .start(&test_caller(), request.clone())
        .await
        .expect("started");
    request.options.pty = None;
    let piped = fixture
        .engine
        .start(&test_caller(), request)
        .await
        .expect("started");
    let run = |id: String| {
        let command = ShellCommand {
            script: "true".to_owned(),
            timeout: PATIENCE,
            lease: None,
            idempotency: None,
        };
        let engine = fixture.engine.clone();
        async move {
            engine
                .run_in_shell(&test_caller(), &id, command)
                .await
                .map(drop)
        }
    };
    assert!(matches!(
        run(plain.id.to_string()).await,
        Err(Error::NoShell { .. })
    ));
    assert!(matches!(
        run(piped.id.to_string()).await,
        Err(Error::NoTerminal { .. })
    ));
    let nobody = run("nobody".to_owned()).await;
    assert!(matches!(nobody, Err(Error::SessionNotFound)), "{nobody:?}");

    let lease = fixture
        .engine
        .acquire_lease(&test_caller(), &fixture.id, "a person", false)
        .await;
    let lease = lease.expect("a lease");
    let refused = fixture.run_for("true", PATIENCE).await;
    assert!(matches!(refused, Err(Error::Leased { .. })), "{refused:?}");
    let command = ShellCommand {
        script: "echo mine".to_owned(),
        timeout: PATIENCE,
        lease: Some(lease.id().clone()),
        idempotency: None,
    };
    let run = fixture
        .engine
        .run_in_shell(&test_caller(), &fixture.id, command)
        .await;
    assert_eq!(fixture.output(&run.expect("typed")).await, "mine\r\n");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_allowed_commands_lets_no_shell_in() {
    let state = TempDir::new().expect("a directory");
    let place = LocalBackend::open(state.path(), ZygoteConfig::InProcess).await;
    let mut settings = Settings::new(state.path());
    let listed = ["ls", "bash", "zsh", "fish"].map(str::to_owned);
    settings.allowed_commands = Some(listed.to_vec());
    let engine = Engine::open(settings, Arc::new(place.expect("a place"))).await;
    let engine = engine.expect("an engine");
    for kind in [ShellKind::Bash, ShellKind::Zsh, ShellKind::Fish] {
        let size = TermSize { cols: 80, rows: 24 };
        let request = engine
            .shell_request(kind, "/tmp".into(), size, Vec::new())
            .await;
        let refused = engine
            .start(&test_caller(), request.expect("a request"))
            .await;
        assert!(matches!(refused, Err(Error::NotAllowed(_))), "{refused:?}");
    }
    engine.shutdown().await;
}
