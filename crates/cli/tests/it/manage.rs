use crate::pty_user::PtyUser;
use crate::test_env::{CliEnv, LineChild};

#[test]
fn lists_are_filtered_and_newest_first() {
    let cli = CliEnv::new();
    let one = cli.stdout_of(&["run", "-d", "-l", "a", "-l", "b", "sleep", "300"]);
    let two = cli.stdout_of(&[
        "run",
        "-d",
        "-l",
        "a",
        "--description",
        "second",
        "sleep",
        "300",
    ]);
    cli.ostler(&["run", "false"]);
    let ps = |args: &[&str]| cli.stdout_of(&[&["ps", "-q"], args].concat());
    assert_eq!(ps(&[]), format!("{two}\n{one}"));
    assert_eq!(ps(&["-a"]).lines().count(), 3);
    assert_eq!(ps(&["--label", "a", "--label", "b"]), one);
    assert_eq!(ps(&["--status", "failed"]).lines().count(), 1);
    assert_eq!(ps(&["-n", "1"]), two);
    let table = cli.stdout_of(&["ps"]);
    assert!(table.lines().next().unwrap().starts_with("ID "), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    let info = cli.json(&["info", "--json", &two]);
    assert_eq!(info["description"], "second");
    assert!(
        cli.stdout_of(&["info", &two])
            .contains("description  second")
    );
}

#[test]
fn stop_kill_wait_and_rm_do_what_they_say() {
    let cli = CliEnv::new();
    let id = cli.background("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    LineChild::start(cli.command(&["logs", "-f", &id])).until("ready");
    assert_eq!(cli.ostler(&["wait", "--timeout", "50ms", &id]).code, 75);
    assert_eq!(cli.ostler(&["rm", &id]).code, 71);
    assert_eq!(
        cli.stdout_of(&["stop", "--grace", "100ms", "--reason", "enough", &id]),
        id
    );
    assert_eq!(cli.ostler(&["wait", &id]).code, 137);
    assert_eq!(cli.json(&["info", "--json", &id])["stop_reason"], "enough");
    assert_eq!(cli.stdout_of(&["rm", &id]), id);
    assert_eq!(cli.ostler(&["info", &id]).code, 66);

    let id =
        cli.background("trap 'echo usr; exit 9' USR1; echo ready; while :; do sleep 0.05; done");
    LineChild::start(cli.command(&["logs", "-f", &id])).until("ready");
    cli.stdout_of(&["kill", "-s", "usr1", &id]);
    assert_eq!(cli.ostler(&["wait", &id]).code, 9);
    assert_eq!(cli.ostler(&["kill", &id]).code, 71);

    let id = cli.background("exec sleep 300");
    cli.stdout_of(&["rm", "-f", &id]);
    assert_eq!(cli.stdout_of(&["rm", "--all"]), "1 removed");
    assert_eq!(cli.stdout_of(&["ps", "-aq"]), "");
}

#[test]
fn one_bad_id_does_not_keep_the_others() {
    let cli = CliEnv::new();
    let id = cli.background("exec sleep 300");
    let ran = cli.ostler(&["stop", "--force", "zzzzzzzz", &id]);
    assert_eq!((ran.code, ran.out.trim()), (66, id.as_str()));
    assert!(ran.err.contains("error[process_not_found]"), "{}", ran.err);
}

#[test]
fn of_several_ids_an_error_names_its_own() {
    let cli = CliEnv::new();
    let ids = ["true", "false"].map(|command| {
        let id = cli.background(command);
        cli.ostler(&["wait", &id]);
        id
    });
    let ran = cli.ostler(&["kill", &ids[0], &ids[1]]);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), ids.len(), "{}", ran.err);
    for (line, id) in lines.iter().zip(&ids) {
        assert!(line.contains(&format!("'{id}': ")), "{line}");
    }
}

#[test]
fn an_id_with_a_slip_is_suggested() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&["run", "-d", "true"]);
    let mut slip = id.clone();
    slip.replace_range(7..8, if id.ends_with('x') { "y" } else { "x" });
    let ran = cli.ostler(&["logs", &slip]);
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
    let cli = CliEnv::new();
    let long = "x".repeat(200);
    let id = cli.stdout_of(&[
        "run",
        "-d",
        "-l",
        &long,
        "sh",
        "-c",
        "exec sleep 300",
        &long,
    ]);
    cli.ostler(&["run", "sh", "-c", "exit 3", &long]);
    for args in [&["ps"][..], &["ps", "-a"]] {
        let table = cli.stdout_of(args);
        assert!(width(&table) <= 80, "{table}");
        assert!(table.contains(&id) && table.contains('…'), "{table}");
    }
    let whole = cli.stdout_of(&["ps", "--no-trunc"]);
    assert!(whole.matches(&long).count() == 2, "{whole}");
    let row = |args: &[&str]| cli.stdout_of(args).lines().last().unwrap().to_owned();
    assert!(row(&["ps"]).contains(" running "));
    cli.stdout_of(&["pause", &id]);
    assert!(row(&["ps"]).contains(" paused "));
    assert!(cli.stdout_of(&["info", &id]).contains("running, paused"));
}

#[test]
fn lists_are_filtered_and_formatted() {
    let cli = CliEnv::new();
    let one = cli.stdout_of(&[
        "run",
        "-d",
        "-l",
        "a",
        "--description",
        "first one",
        "sleep",
        "300",
    ]);
    let two = cli.stdout_of(&["run", "-d", "-l", "b", "sleep", "300"]);
    cli.ostler(&["run", "false"]);
    let ids = |args: &[&str]| cli.stdout_of(&[&["ps", "--format", "ids"], args].concat());
    assert_eq!(ids(&[]), format!("{two}\n{one}"));
    assert_eq!(ids(&["--filter", "label=a"]), one);
    assert_eq!(ids(&["--filter", "name=first"]), one);
    assert_eq!(ids(&["-f", "name=first", "-f", "label=b"]), "");
    assert_eq!(ids(&["--filter", "status=failed"]).lines().count(), 1);
    assert_eq!(ids(&["--filter", "status=paused"]), "");
    cli.stdout_of(&["pause", &two]);
    assert_eq!(ids(&["--filter", "status=paused"]), two);
    assert_eq!(ids(&["--status", "paused"]), two);
    let json = cli.json(&["ps", "--format", "json"]);
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert!(
        cli.stdout_of(&["ps", "--format", "table"])
            .starts_with("ID ")
    );
    for bad in ["colour=red", "status=happy", "status"] {
        let refused = cli.ostler(&["ps", "--filter", bad]);
        assert_eq!(refused.code, 64, "{refused:?}");
        assert!(refused.err.contains("allowed: "), "{refused:?}");
    }
    let both = cli.ostler(&["ps", "-f", "status=failed", "-f", "status=error"]);
    assert_eq!(both.code, 64, "{both:?}");
}

#[test]
fn a_list_that_is_watched_changes_until_ctrl_c() {
    let cli = CliEnv::new();
    let id = cli.background("exec sleep 300");
    let mut watching = PtyUser::new(&cli, &["ps", "--watch"]);
    watching.wait_text(&id);
    cli.stdout_of(&["pause", &id]);
    watching.wait_until(|text| text.contains(&id) && text.contains("paused"));
    cli.stdout_of(&["stop", "--force", &id]);
    watching.wait_until(|text| text.contains("ID") && !text.contains(&id));
    watching.type_in("\x03");
    assert_eq!(watching.end(), 0);
}

#[test]
fn what_executions_use_is_shown() {
    let cli = CliEnv::new();
    let id = cli.background("sleep 300 & wait");
    let table = cli.stdout_of(&["stats"]);
    assert!(table.starts_with("ID ") && table.contains(&id), "{table}");
    let used = cli.json(&["stats", "--json", &id[..5]]);
    assert_eq!(used[0]["id"], id.as_str(), "{used}");
    assert!(used[0]["memory_bytes"].as_u64().unwrap() > 0, "{used}");
    assert!(
        !used[0]["processes"].as_array().unwrap().is_empty(),
        "{used}"
    );
    cli.stdout_of(&["stop", "--force", &id]);
    assert!(!cli.stdout_of(&["stats"]).contains(&id));
    assert!(cli.stdout_of(&["stats", &id]).contains(&id));
    assert_eq!(cli.ostler(&["stats", "zzzzzzzz"]).code, 66);
}

#[test]
fn a_command_is_started_again_as_it_was() {
    let cli = CliEnv::new();
    let flags = ["-l", "mine", "-e", "FLAVOUR=sweet", "--timeout", "10m"];
    let script = "echo $FLAVOUR; pwd; exec sleep 300";
    let run = ["run", "-d", "--description", "a test", "--cwd", "/"];
    let id = cli.stdout_of(&[&run[..], &flags, &["sh", "-c", script]].concat());
    LineChild::start(cli.command(&["logs", "-f", &id])).until("/");
    let next = cli.stdout_of(&["restart", &id[..5]]);
    assert_ne!(next, id);
    let (old, new) = (
        cli.json(&["info", "--json", &id]),
        cli.json(&["info", "--json", &next]),
    );
    assert_eq!(old["stop_reason"], "started again");
    for same in ["argv", "directory", "labels", "description", "timeout"] {
        assert_eq!(new[same], old[same], "{same}");
    }
    LineChild::start(cli.command(&["logs", "-f", &next])).until("/");
    let shown = cli.stdout_of(&["logs", "--no-time", &next]);
    assert_eq!(shown, "sweet\n/");
    // Also of an ended command, and one that needs a terminal.
    let failed = cli.ostler(&["run", "-t", "sh", "-c", "test -t 1 && exit 7"]);
    assert_eq!(failed.code, 7, "{failed:?}");
    let again = cli.stdout_of(&["restart", "@last"]);
    assert_eq!(cli.ostler(&["wait", &again]).code, 7);
    assert_eq!(cli.ostler(&["restart", "zzzzzzzz"]).code, 66);
    cli.stdout_of(&["service", "start", "--name", "steady", "sleep", "300"]);
    let refused = cli.ostler(&["restart", "@last-service"]);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(
        refused.err.contains("service restart steady"),
        "{refused:?}"
    );
}
