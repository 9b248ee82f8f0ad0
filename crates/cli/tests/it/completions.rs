//! Completion by pressing Tab in shells on a terminal.

use std::path::Path;

use crate::pty_user::PtyUser;
use crate::test_env::CliEnv;

/// A search path with the binary and the system's programs.
fn path() -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_ostler")).parent().unwrap();
    let others = std::env::var("PATH").unwrap_or_default();
    format!("PATH={}:{others}", own.display())
}

/// A shell on a terminal that completes what is typed; none if the shell is not installed.
fn shell(cli: &CliEnv, words: &[&str], begin: &str) -> Option<PtyUser> {
    if cli.ostler(&["run", words[0], "-c", "true"]).code != 0 {
        return None;
    }
    let path = path();
    let args: Vec<&str> = ["run", "-t", "-e", &path, "-e", "PS1=$ "]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    let mut terminal = PtyUser::new(cli, &args);
    terminal.type_in(&format!("{begin}; echo re''ady\r"));
    terminal.wait_until(|text| text.lines().any(|line| line.trim() == "ready"));
    Some(terminal)
}

#[test]
fn bash_completes_the_command_after_the_options() {
    let cli = CliEnv::new();
    let bash = ["bash", "--norc", "--noprofile", "-i"];
    let begin = "source <(ostler completions bash); touch isolated-file";
    let mut terminal = shell(&cli, &bash, begin).expect("bash is there");
    terminal.type_in("ostler run -- base6\t");
    terminal.wait_text("ostler run -- base64");
    terminal.type_in("iso\t");
    terminal.wait_text("ostler run -- base64 isolated-file");
    terminal.type_in("\x15exit\r");
    terminal.end();
}

/// Completes a unique prefix of an id that is too short to be accepted as one.
fn completes(words: &[&str], begin: &str) {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&["run", "-d", "sh", "-c", "echo all of it"]);
    assert_eq!(cli.ostler(&["wait", &id]).code, 0);
    let Some(mut terminal) = shell(&cli, words, begin) else {
        return;
    };
    let ids = cli.stdout_of(&["ps", "-aq"]);
    let only = |chars: usize| {
        let begins = |other: &&str| other.starts_with(&id[..chars]);
        ids.lines().filter(begins).count() == 1
    };
    let chars = (1..=8).find(|chars| only(*chars)).unwrap();
    terminal.type_in(&format!("ostler logs --no-time {}\t", &id[..chars]));
    terminal.wait_text(&format!("ostler logs --no-time {id}"));
    terminal.type_in("\r");
    terminal.wait_until(|text| text.lines().any(|line| line.trim() == "all of it"));
    terminal.type_in("ostler info @la\t");
    terminal.wait_text("ostler info @last");
    terminal.type_in("\x15");
    // Verbs and the values of flags are completed as before.
    terminal.type_in("ostler comple\t");
    terminal.wait_text("ostler completions");
    terminal.type_in("\x15");
    for (typed, completed) in [
        ("ostler run --isolation me", "ostler run --isolation medium"),
        ("ostler kill --signal HU", "ostler kill --signal HUP"),
        ("ostler ps --status pau", "ostler ps --status paused"),
        (
            "ostler run --allow-degraded landl",
            "ostler run --allow-degraded landlock",
        ),
    ] {
        terminal.type_in(&format!("{typed}\t"));
        terminal.wait_text(completed);
        terminal.type_in("\x15");
    }
    terminal.type_in("\x15exit\r");
    terminal.end();
}

#[test]
fn bash_completes_ids() {
    let bash = ["bash", "--norc", "--noprofile", "-i"];
    completes(&bash, "source <(ostler completions bash)");
}

#[test]
fn zsh_completes_ids() {
    let begin = "autoload -U compinit; compinit -u -D; source <(ostler completions zsh)";
    completes(&["zsh", "-f", "-i"], begin);
}

#[test]
fn fish_completes_ids() {
    completes(
        &["fish", "--no-config", "-i"],
        "ostler completions fish | source",
    );
}

#[test]
fn words_are_offered_with_what_they_are_and_no_daemon_is_started() {
    let cli = CliEnv::new();
    let offered = |words: &[&str]| cli.stdout_of(&[&["__complete", "--"], words].concat());
    assert_eq!(offered(&["logs", ""]), "");
    assert!(cli.daemon().is_none());
    let id = cli.background("exec sleep 300");
    let ended = cli.stdout_of(&["run", "-d", "true"]);
    cli.ostler(&["wait", &ended]);
    assert_eq!(
        offered(&["stop", ""]),
        format!("{id}\tsh -c 'exec sleep 300'")
    );
    assert_eq!(offered(&["logs", ""]).lines().count(), 2);
    assert_eq!(offered(&["logs", &ended[..7]]), format!("{ended}\ttrue"));
    assert_eq!(offered(&["resume", ""]), "");
    assert!(offered(&["info", "@"]).contains("@last\t"));
    for none in [
        &["ps"][..],
        &["logs", "-"],
        &["run", ""],
        &["nonsense", ""],
        &[],
    ] {
        assert_eq!(offered(none), "", "{none:?}");
    }
    cli.stdout_of(&["service", "start", "--name", "nameless", "sleep", "300"]);
    assert!(offered(&["service", "stop", "na"]).starts_with("nameless\t"));
    assert_eq!(offered(&["service", "stop", "x"]), "");
}
