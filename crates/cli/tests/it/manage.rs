use crate::world::{Lines, World};

#[test]
fn lists_are_filtered_and_newest_first() {
    let world = World::new();
    let one = world.ok(&["run", "-d", "-l", "a", "-l", "b", "sleep", "300"]);
    let two = world.ok(&[
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
    let ps = |args: &[&str]| world.ok(&[&["ps", "-q"], args].concat());
    assert_eq!(ps(&[]), format!("{two}\n{one}"));
    assert_eq!(ps(&["-a"]).lines().count(), 3);
    assert_eq!(ps(&["--label", "a", "--label", "b"]), one);
    assert_eq!(ps(&["--status", "failed"]).lines().count(), 1);
    assert_eq!(ps(&["-n", "1"]), two);
    let table = world.ok(&["ps"]);
    assert!(table.lines().next().unwrap().starts_with("ID "), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    let info = world.json(&["info", "--json", &two]);
    assert_eq!(info["description"], "second");
    assert!(world.ok(&["info", &two]).contains("description  second"));
}

#[test]
fn stop_kill_wait_and_rm_do_what_they_say() {
    let world = World::new();
    let id = world.background("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    Lines::start(world.command(&["logs", "-f", &id])).until("ready");
    assert_eq!(world.ostler(&["wait", "--timeout", "50ms", &id]).code, 75);
    assert_eq!(world.ostler(&["rm", &id]).code, 71);
    assert_eq!(
        world.ok(&["stop", "--grace", "100ms", "--reason", "enough", &id]),
        id
    );
    assert_eq!(world.ostler(&["wait", &id]).code, 137);
    assert_eq!(
        world.json(&["info", "--json", &id])["stop_reason"],
        "enough"
    );
    assert_eq!(world.ok(&["rm", &id]), id);
    assert_eq!(world.ostler(&["info", &id]).code, 66);

    let id =
        world.background("trap 'echo usr; exit 9' USR1; echo ready; while :; do sleep 0.05; done");
    Lines::start(world.command(&["logs", "-f", &id])).until("ready");
    world.ok(&["kill", "-s", "usr1", &id]);
    assert_eq!(world.ostler(&["wait", &id]).code, 9);
    assert_eq!(world.ostler(&["kill", &id]).code, 71);

    let id = world.background("exec sleep 300");
    world.ok(&["rm", "-f", &id]);
    assert_eq!(world.ok(&["rm", "--all"]), "1 removed");
    assert_eq!(world.ok(&["ps", "-aq"]), "");
}

#[test]
fn one_bad_id_does_not_keep_the_others() {
    let world = World::new();
    let id = world.background("exec sleep 300");
    let ran = world.ostler(&["stop", "--force", "zzzzzzzz", &id]);
    assert_eq!((ran.code, ran.out.trim()), (66, id.as_str()));
    assert!(ran.err.contains("error[process_not_found]"), "{}", ran.err);
}

#[test]
fn an_id_with_a_slip_is_suggested() {
    let world = World::new();
    let id = world.ok(&["run", "-d", "true"]);
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
