//! Shell sessions: `ostler shell` and `ostler exec`.

use crate::pty_user::PtyUser;
use crate::test_env::CliEnv;

fn shell(cli: &CliEnv) -> String {
    cli.stdout_of(&["shell", "bash", "--detach"])
}

#[test]
fn commands_run_in_a_living_shell() {
    let cli = CliEnv::new();
    let id = shell(&cli);
    let ran = cli.ostler(&[
        "exec",
        &id,
        "--",
        "echo",
        "hello;",
        "exit_with()",
        "{ return $1; }",
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "hello\n", ""),
        "{ran:?}"
    );
    assert_eq!(cli.ostler(&["exec", &id, "exit_with 7"]).code, 7);
    assert_eq!(
        cli.stdout_of(&["exec", &id, "cd /; printf '\\033[1mbold\\033[0m'"]),
        "bold"
    );
    assert_eq!(cli.stdout_of(&["exec", &id, "pwd"]), "/");
    assert_eq!(
        cli.stdout_of(&["exec", &id, "for n in 1 2\ndo echo $n\ndone"]),
        "1\n2"
    );
    let lines = cli.stdout_of(&["exec", &id, "seq 300000"]);
    assert_eq!(lines.lines().count(), 300_000);
    assert_eq!(lines.lines().last(), Some("300000"));
}

#[test]
fn a_command_that_does_not_end_is_reported_as_running() {
    let cli = CliEnv::new();
    let id = shell(&cli);
    let late = cli.ostler(&["exec", &id, "--timeout", "500ms", "echo begun; sleep 60"]);
    assert_eq!((late.code, late.out.as_str()), (75, "begun\n"), "{late:?}");
    let busy = cli.ostler(&["exec", &id, "echo no"]);
    assert_eq!(busy.code, 71, "{busy:?}");
    cli.stdout_of(&["send", &id, "--key", "ctrl-c"]);

    let id = shell(&cli);
    let asks = cli.ostler(&["exec", &id, "read -p 'Name? ' name; echo Hi $name"]);
    assert_eq!(asks.code, 71, "{asks:?}");
    assert!(
        asks.err.contains("interaction_error") && asks.err.contains("Name?"),
        "{}",
        asks.err
    );
    cli.stdout_of(&["send", &id, "Ada"]);

    let id = shell(&cli);
    let open = cli.ostler(&["exec", &id, "echo 'open"]);
    assert_eq!((open.code, open.out.as_str()), (64, ""), "{open:?}");
    let id = shell(&cli);
    let gone = cli.ostler(&["exec", &id, "exit 6"]);
    assert_eq!(gone.code, 6, "{gone:?}");
    let id = cli.background("sleep 60");
    let none = cli.ostler(&["exec", &id, "true"]);
    assert_eq!(none.code, 64, "{none:?}");
}

#[test]
fn a_person_and_commands_share_a_shell() {
    let cli = CliEnv::new();
    let mut terminal = PtyUser::new(&cli, &["shell", "bash"]);
    terminal.wait_until(|text| text.ends_with('#') || text.ends_with('$'));
    terminal.type_in("cd /usr\r");
    terminal.wait_until(|text| text.matches("/usr").count() >= 2);
    let id = cli.find_execution("bash");
    let busy = cli.ostler(&["exec", &id, "pwd"]);
    assert_eq!(busy.code, 71, "{busy:?}");
    terminal.type_in("\x1ch");
    assert!((0..200).any(|_| cli.ostler(&["exec", &id, "pwd"]).out == "/usr\n"));
    terminal.wait_text("pwd");
    terminal.type_in("\x1ct");
    terminal.type_in("exit 2\r");
    assert_eq!(terminal.end(), 2);
}
