//! Shell sessions: `ostler shell` and `ostler exec`.

use crate::pty_user::PtyUser;
use crate::test_env::CliEnv;

fn shell(world: &CliEnv) -> String {
    world.stdout_of(&["shell", "bash", "--detach"])
}

#[test]
fn commands_run_in_a_living_shell() {
    let world = CliEnv::new();
    let id = shell(&world);
    let ran = world.ostler(&[
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
    assert_eq!(world.ostler(&["exec", &id, "exit_with 7"]).code, 7);
    assert_eq!(
        world.stdout_of(&["exec", &id, "cd /; printf '\\033[1mbold\\033[0m'"]),
        "bold"
    );
    assert_eq!(world.stdout_of(&["exec", &id, "pwd"]), "/");
    assert_eq!(
        world.stdout_of(&["exec", &id, "for n in 1 2\ndo echo $n\ndone"]),
        "1\n2"
    );
    let lines = world.stdout_of(&["exec", &id, "seq 300000"]);
    assert_eq!(lines.lines().count(), 300_000);
    assert_eq!(lines.lines().last(), Some("300000"));
}

#[test]
fn what_does_not_end_is_told_honestly() {
    let world = CliEnv::new();
    let id = shell(&world);
    let late = world.ostler(&["exec", &id, "--timeout", "500ms", "echo begun; sleep 60"]);
    assert_eq!((late.code, late.out.as_str()), (75, "begun\n"), "{late:?}");
    let busy = world.ostler(&["exec", &id, "echo no"]);
    assert_eq!(busy.code, 71, "{busy:?}");
    world.stdout_of(&["send", &id, "--key", "ctrl-c"]);

    let id = shell(&world);
    let asks = world.ostler(&["exec", &id, "read -p 'Name? ' name; echo Hi $name"]);
    assert_eq!(asks.code, 71, "{asks:?}");
    assert!(
        asks.err.contains("interaction_error") && asks.err.contains("Name?"),
        "{}",
        asks.err
    );
    world.stdout_of(&["send", &id, "Ada"]);

    let id = shell(&world);
    let open = world.ostler(&["exec", &id, "echo 'open"]);
    assert_eq!((open.code, open.out.as_str()), (64, ""), "{open:?}");
    let id = shell(&world);
    let gone = world.ostler(&["exec", &id, "exit 6"]);
    assert_eq!(gone.code, 6, "{gone:?}");
    let id = world.background("sleep 60");
    let none = world.ostler(&["exec", &id, "true"]);
    assert_eq!(none.code, 64, "{none:?}");
}

#[test]
fn a_person_and_commands_share_a_shell() {
    let world = CliEnv::new();
    let mut sitting = PtyUser::new(&world, &["shell", "bash"]);
    sitting.wait_until(|text| text.ends_with('#') || text.ends_with('$'));
    sitting.type_in("cd /usr\r");
    sitting.wait_until(|text| text.matches("/usr").count() >= 2);
    let id = world.find_execution("bash");
    let busy = world.ostler(&["exec", &id, "pwd"]);
    assert_eq!(busy.code, 71, "{busy:?}");
    sitting.type_in("\x1ch");
    assert!((0..200).any(|_| world.ostler(&["exec", &id, "pwd"]).out == "/usr\n"));
    sitting.wait_text("pwd");
    sitting.type_in("\x1ct");
    sitting.type_in("exit 2\r");
    assert_eq!(sitting.end(), 2);
}
