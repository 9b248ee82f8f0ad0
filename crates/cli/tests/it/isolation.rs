use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::test_env::{CliEnv, CommandOutput, to_output};

/// A directory that may be a workspace, unlike the home directory.
fn project(cli: &CliEnv) -> PathBuf {
    let directory = cli.path().join("project");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs a script at level high; none if this machine cannot, which is reported with the missing
/// capability.
fn run_high(cli: &CliEnv, flags: &[&str], script: &str) -> Option<CommandOutput> {
    let directory = project(cli).display().to_string();
    let run = ["run", "--isolation", "high", "--cwd", &directory];
    let all = [&run[..], flags, &["sh", "-c", script]].concat();
    let ran = cli.ostler(&all);
    if ran.code == 77 && ran.err.contains("cannot be had here") {
        assert!(ran.err.contains('('), "no reason: {ran:?}");
        return None;
    }
    Some(ran)
}

#[test]
fn an_isolated_command_sees_its_workspace_and_not_our_state() {
    let cli = CliEnv::new();
    let state = cli.state().display().to_string();
    let script = format!("echo in > made; cat made; ls {state}/ledger; cat /etc/shadow; :");
    let Some(ran) = run_high(&cli, &[], &script) else {
        return;
    };
    assert_eq!((ran.code, ran.out.as_str()), (0, "in\n"), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(project(&cli).join("made")).unwrap(),
        "in\n"
    );
    let id = cli.find_execution("echo in");
    let info = cli.json(&["info", "--json", &id]);
    assert_eq!(info["isolation"]["confinement"]["network"], "none");
    let shown = cli.stdout_of(&["info", &id]);
    for row in [
        "isolation    high",
        "in force     ",
        "workspace    ",
        "network      none",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
}

#[test]
fn a_paused_tree_stands_still_and_is_shown_so() {
    let cli = CliEnv::new();
    let id = cli.background("echo up; exec sleep 300");
    assert_eq!(cli.stdout_of(&["pause", &id]), id);
    assert!(cli.stdout_of(&["info", &id]).contains("running, paused"));
    let info = cli.json(&["resume", "--json", &id]);
    assert_eq!(info["paused"], false);
    let gone = cli.ostler(&["pause", "zzzzzzzz"]);
    assert_eq!(gone.code, 66, "{gone:?}");
    cli.stdout_of(&["stop", "--force", &id]);
    let ended = cli.ostler(&["pause", &id]);
    assert_ne!(ended.code, 0, "{ended:?}");
}

#[test]
fn secrets_reach_the_command_and_not_its_output() {
    let cli = CliEnv::new();
    let script = "test \"$TOKEN\" = hunter2hunter2 && echo got $TOKEN";
    let mut command = cli.command(&["run", "--secret", "TOKEN", "sh", "-c", script]);
    command.env("OSTLER_SECRET_TOKEN", "hunter2hunter2");
    let ran = to_output(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out.starts_with("got ") && !ran.out.contains("hunter2"),
        "{ran:?}"
    );
    let unknown = cli.ostler(&["run", "--secret", "NOBODY", "true"]);
    assert_eq!(unknown.code, 64, "{unknown:?}");
    assert!(unknown.err.contains("NOBODY"), "{unknown:?}");
}

#[test]
fn a_file_of_secrets_that_others_can_read_stops_the_start() {
    let cli = CliEnv::new();
    let directory = cli.path().join("config/ostler");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("secrets.toml");
    std::fs::write(&file, "TOKEN = \"hunter2hunter2\"\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = cli.ostler(&["run", "--no-daemon", "true"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(
        refused.err.contains("mode 0644") && refused.err.contains("chmod 600"),
        "{refused:?}"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let script = "test \"$TOKEN\" = hunter2hunter2";
    cli.stdout_of(&["run", "--secret", "TOKEN", "sh", "-c", script]);
}

#[test]
fn limits_are_accepted_and_reported() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&[
        "run", "-d", "--pids", "64", "--memory", "512M", "--cpus", "0.5", "true",
    ]);
    cli.stdout_of(&["wait", &id]);
    let shown = cli.stdout_of(&["info", &id]);
    assert!(
        shown.contains("512 MiB memory, 0.5 cores, 64 processes"),
        "{shown}"
    );
}

#[test]
fn the_doctor_tells_every_level_and_exits_by_the_highest() {
    let cli = CliEnv::new();
    let ran = cli.ostler(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let whole = report["high_is_whole"].as_bool().unwrap();
    assert_eq!(ran.code, i32::from(!whole), "{ran:?}");
    let levels = report["levels"].as_array().unwrap();
    let names: Vec<&str> = levels
        .iter()
        .map(|it| it["level"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["basic", "medium", "high", "container"]);
    for missing in levels[2]["missing"].as_array().unwrap() {
        assert!(!missing["reason"].as_str().unwrap().is_empty(), "{missing}");
    }
    for expected in report["witnessed"].as_array().unwrap() {
        assert!(expected["held"] == true || !whole, "{expected}");
    }
    let shown = cli.ostler(&["doctor"]).out;
    assert!(
        shown.contains("Session isolation is between clients"),
        "{shown}"
    );
    let scratch = std::fs::read_dir(cli.path())
        .unwrap()
        .filter_map(Result::ok);
    let mut scratch = scratch.map(|entry| entry.file_name().into_string().unwrap());
    assert!(!scratch.any(|name| name.starts_with("ostler-doctor")));
}

#[test]
fn a_flag_of_level_high_asks_for_level_high() {
    let cli = CliEnv::new();
    let directory = project(&cli).display().to_string();
    for (flag, value) in [("--overlay", None), ("--network", Some("none"))] {
        let flags: Vec<&str> = [flag].into_iter().chain(value).collect();
        let run = ["run", "-d", "--json", "--cwd", &directory];
        let ran = cli.ostler(&[&run[..], &flags, &["true"]].concat());
        if ran.code == 77 {
            assert!(ran.err.contains("isolation level 'high'"), "{ran:?}");
        } else {
            let info: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(info["isolation"]["asked"], "high", "{info}");
        }
        let low = ["run", "--isolation", "medium", "--cwd", &directory];
        let refused = cli.ostler(&[&low[..], &flags, &["true"]].concat());
        assert_eq!(refused.code, 64, "{refused:?}");
        for expected in [flag, "--isolation high"] {
            assert!(refused.err.contains(expected), "{refused:?}");
        }
    }
    cli.stdout_of(&["run", "--network", "full", "--isolation", "medium", "true"]);
}

#[test]
fn hosts_that_were_refused_are_reported() {
    let cli = CliEnv::new();
    let flags = ["--network", "listed.example.org"];
    let script = "getent hosts unlisted.example.net; echo over";
    let Some(ran) = run_high(&cli, &flags, script) else {
        return;
    };
    assert_eq!(ran.out, "over\n", "{ran:?}");
    let id = cli.find_execution("getent");
    let expected = format!("ostler: {id}: its network refused unlisted.example.net");
    assert!(ran.err.contains(&expected), "{ran:?}");
    let logs = cli.ostler(&["logs", "--no-time", &id]);
    assert!(
        logs.err.contains(&expected) && logs.out == "over\n",
        "{logs:?}"
    );
    let info = cli.stdout_of(&["info", &id]);
    assert!(info.contains("refused      unlisted.example.net"), "{info}");
}
