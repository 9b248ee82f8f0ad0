use crate::pty_user::PtyUser;
use crate::test_env::{CliEnv, LineChild};

#[test]
fn lists_are_filtered_and_newest_first() {
    let world = CliEnv::new();
    let one = world.stdout_of(&["run", "-d", "-l", "a", "-l", "b", "sleep", "300"]);
    let two = world.stdout_of(&[
        "run",
        "-d",
        "-l",
        "a",
        "--description",
        "second",
        "sleep",
        "300",
    ]);
    world.ostler(&["run", "false"]);
    let ps = |args: &[&str]| world.stdout_of(&[&["ps", "-q"], args].concat());
    assert_eq!(ps(&[]), format!("{two}\n{one}"));
    assert_eq!(ps(&["-a"]).lines().count(), 3);
    assert_eq!(ps(&["--label", "a", "--label", "b"]), one);
    assert_eq!(ps(&["--status", "failed"]).lines().count(), 1);
    assert_eq!(ps(&["-n", "1"]), two);
    let table = world.stdout_of(&["ps"]);
    assert!(table.lines().next().unwrap().starts_with("ID "), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    let info = world.json(&["info", "--json", &two]);
    assert_eq!(info["description"], "second");
    assert!(
        world
            .stdout_of(&["info", &two])
            .contains("description  second")
    );
}

#[test]
fn stop_kill_wait_and_rm_do_what_they_say() {
    let world = CliEnv::new();
    let id = world.background("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    LineChild::start(world.command(&["logs", "-f", &id])).until("ready");
    assert_eq!(world.ostler(&["wait", "--timeout", "50ms", &id]).code, 75);
    assert_eq!(world.ostler(&["rm", &id]).code, 71);
    assert_eq!(
        world.stdout_of(&["stop", "--grace", "100ms", "--reason", "enough", &id]),
        id
    );
    assert_eq!(world.ostler(&["wait", &id]).code, 137);
    assert_eq!(
        world.json(&["info", "--json", &id])["stop_reason"],
        "enough"
    );
    assert_eq!(world.stdout_of(&["rm", &id]), id);
    assert_eq!(world.ostler(&["info", &id]).code, 66);

    let id =
        world.background("trap 'echo usr; exit 9' USR1; echo ready; while :; do sleep 0.05; done");
    LineChild::start(world.command(&["logs", "-f", &id])).until("ready");
    world.stdout_of(&["kill", "-s", "usr1", &id]);
    assert_eq!(world.ostler(&["wait", &id]).code, 9);
    assert_eq!(world.ostler(&["kill", &id]).code, 71);

    let id = world.background("exec sleep 300");
    world.stdout_of(&["rm", "-f", &id]);
    assert_eq!(world.stdout_of(&["rm", "--all"]), "1 removed");
    assert_eq!(world.stdout_of(&["ps", "-aq"]), "");
}

#[test]
fn one_bad_id_does_not_keep_the_others() {
    let world = CliEnv::new();
    let id = world.background("exec sleep 300");
    let ran = world.ostler(&["stop", "--force", "zzzzzzzz", &id]);
    assert_eq!((ran.code, ran.out.trim()), (66, id.as_str()));
    assert!(ran.err.contains("error[process_not_found]"), "{}", ran.err);
}

#[test]
fn an_id_with_a_slip_is_suggested() {
    let world = CliEnv::new();
    let id = world.stdout_of(&["run", "-d", "true"]);
    let mut slip = id.clone();
    slip.replace_range(7..8, if id.ends_with('x') { "y" } else { "x" });
    let ran = world.ostler(&["logs", &slip]);
    assert_eq!(ran.code, 66);
    assert!(
        ran.err.contains(&format!("did you mean {id} (true)?")),
        "{}",
        ran.err
    );
}

/// The width of a table's widest line.
fn width(table: &str) -> usize {
    let lines = table.lines().map(|line| line.chars().count());
    lines.max().unwrap_or_default()
}

#[test]
fn a_list_fits_a_terminal_and_shows_what_is_paused() {
    let world = CliEnv::new();
    let long = "x".repeat(200);
    let id = world.stdout_of(&[
        "run",
        "-d",
        "-l",
        &long,
        "sh",
        "-c",
        "exec sleep 300",
        &long,
    ]);
    world.ostler(&["run", "sh", "-c", "exit 3", &long]);
    for args in [&["ps"][..], &["ps", "-a"]] {
        let table = world.stdout_of(args);
        assert!(width(&table) <= 80, "{table}");
        assert!(table.contains(&id) && table.contains('…'), "{table}");
    }
    let whole = world.stdout_of(&["ps", "--no-trunc"]);
    assert!(whole.matches(&long).count() == 2, "{whole}");
    let row = |args: &[&str]| world.stdout_of(args).lines().last().unwrap().to_owned();
    assert!(row(&["ps"]).contains(" running "));
    world.stdout_of(&["pause", &id]);
    assert!(row(&["ps"]).contains(" paused "));
    assert!(world.stdout_of(&["info", &id]).contains("running, paused"));
}

#[test]
fn lists_are_filtered_and_formatted() {
    let world = CliEnv::new();
    let one = world.stdout_of(&[
        "run",
        "-d",
        "-l",
        "a",
        "--description",
        "first one",
        "sleep",
        "300",
    ]);
    let two = world.stdout_of(&["run", "-d", "-l", "b", "sleep", "300"]);
    world.ostler(&["run", "false"]);
    let ids = |args: &[&str]| world.stdout_of(&[&["ps", "--format", "ids"], args].concat());
    assert_eq!(ids(&[]), format!("{two}\n{one}"));
    assert_eq!(ids(&["--filter", "label=a"]), one);
    assert_eq!(ids(&["--filter", "name=first"]), one);
    assert_eq!(ids(&["-f", "name=first", "-f", "label=b"]), "");
    assert_eq!(ids(&["--filter", "status=failed"]).lines().count(), 1);
    assert_eq!(ids(&["--filter", "status=paused"]), "");
    world.stdout_of(&["pause", &two]);
    assert_eq!(ids(&["--filter", "status=paused"]), two);
    assert_eq!(ids(&["--status", "paused"]), two);
    let json = world.json(&["ps", "--format", "json"]);
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert!(
        world
            .stdout_of(&["ps", "--format", "table"])
            .starts_with("ID ")
    );
    for bad in ["colour=red", "status=happy", "status"] {
        let refused = world.ostler(&["ps", "--filter", bad]);
        assert_eq!(refused.code, 64, "{refused:?}");
        assert!(refused.err.contains("allowed: "), "{refused:?}");
    }
    let both = world.ostler(&["ps", "-f", "status=failed", "-f", "status=error"]);
    assert_eq!(both.code, 64, "{both:?}");
}

#[test]
fn a_list_that_is_watched_changes_until_ctrl_c() {
    let world = CliEnv::new();
    let id = world.background("exec sleep 300");
    let mut watching = PtyUser::new(&world, &["ps", "--watch"]);
    watching.wait_text(&id);
    world.stdout_of(&["pause", &id]);
    watching.wait_until(|text| text.contains(&id) && text.contains("paused"));
    world.stdout_of(&["stop", "--force", &id]);
    watching.wait_until(|text| text.contains("ID") && !text.contains(&id));
    watching.type_in("\x03");
    assert_eq!(watching.end(), 0);
}

#[test]
fn what_executions_use_is_shown() {
    let world = CliEnv::new();
    let id = world.background("sleep 300 & wait");
    let table = world.stdout_of(&["stats"]);
    assert!(table.starts_with("ID ") && table.contains(&id), "{table}");
    let used = world.json(&["stats", "--json", &id[..5]]);
    assert_eq!(used[0]["id"], id.as_str(), "{used}");
    assert!(used[0]["memory_bytes"].as_u64().unwrap() > 0, "{used}");
    assert!(
        !used[0]["processes"].as_array().unwrap().is_empty(),
        "{used}"
    );
    world.stdout_of(&["stop", "--force", &id]);
    assert!(!world.stdout_of(&["stats"]).contains(&id));
    assert!(world.stdout_of(&["stats", &id]).contains(&id));
    assert_eq!(world.ostler(&["stats", "zzzzzzzz"]).code, 66);
}

#[test]
fn a_command_is_started_again_as_it_was() {
    let world = CliEnv::new();
    let flags = ["-l", "mine", "-e", "FLAVOUR=sweet", "--timeout", "10m"];
    let script = "echo $FLAVOUR; pwd; exec sleep 300";
    let run = ["run", "-d", "--description", "a test", "--cwd", "/"];
    let id = world.stdout_of(&[&run[..], &flags, &["sh", "-c", script]].concat());
    LineChild::start(world.command(&["logs", "-f", &id])).until("/");
    let next = world.stdout_of(&["restart", &id[..5]]);
    assert_ne!(next, id);
    let (old, new) = (
        world.json(&["info", "--json", &id]),
        world.json(&["info", "--json", &next]),
    );
    assert_eq!(old["stop_reason"], "started again");
    for same in ["argv", "directory", "labels", "description", "timeout"] {
        assert_eq!(new[same], old[same], "{same}");
    }
    LineChild::start(world.command(&["logs", "-f", &next])).until("/");
    let shown = world.stdout_of(&["logs", "--no-time", &next]);
    assert_eq!(shown, "sweet\n/");
    // Also of an ended command, and one that needs a terminal.
    let failed = world.ostler(&["run", "-t", "sh", "-c", "test -t 1 && exit 7"]);
    assert_eq!(failed.code, 7, "{failed:?}");
    let again = world.stdout_of(&["restart", "@last"]);
    assert_eq!(world.ostler(&["wait", &again]).code, 7);
    assert_eq!(world.ostler(&["restart", "zzzzzzzz"]).code, 66);
    world.stdout_of(&["service", "start", "--name", "steady", "sleep", "300"]);
    let refused = world.ostler(&["restart", "@last-service"]);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(
        refused.err.contains("service restart steady"),
        "{refused:?}"
    );
}
