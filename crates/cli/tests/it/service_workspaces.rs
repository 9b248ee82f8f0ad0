//! Names of services are unique within a workspace: that of the nearest `ostler.toml`.

use std::path::{Path, PathBuf};

use crate::test_env::{CliEnv, CommandOutput, to_output};

/// A command that runs until it is stopped.
const STAYS: &str = "command = \"exec sleep 300\"\n";

/// A directory with this `ostler.toml`, or without one.
fn workspace(cli: &CliEnv, name: &str, toml: Option<&str>) -> PathBuf {
    let dir = cli.path().join(name);
    std::fs::create_dir(&dir).unwrap();
    if let Some(toml) = toml {
        std::fs::write(dir.join("ostler.toml"), toml).unwrap();
    }
    dir
}

fn from(cli: &CliEnv, dir: &Path, words: &[&str]) -> CommandOutput {
    let mut command = cli.command(&[&["service"], words].concat());
    to_output(command.current_dir(dir).output().unwrap())
}

fn ok(cli: &CliEnv, dir: &Path, words: &[&str]) -> String {
    let ran = from(cli, dir, words);
    assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    ran.out.trim_end_matches('\n').to_owned()
}

#[test]
fn names_hold_within_the_workspace_of_the_nearest_file() {
    let cli = CliEnv::new();
    let web = format!("[services.web]\n{STAYS}");
    let [a, b] = ["a", "b"].map(|name| workspace(&cli, name, Some(&web)));
    let none = workspace(&cli, "none", None);
    std::fs::create_dir(b.join("sub")).unwrap();
    let sub = b.join("sub");
    ok(&cli, &a, &["up"]);
    ok(&cli, &sub, &["up"]);
    ok(&cli, &none, &["start", "-n", "web", "--", "sleep", "300"]);

    // Each lists its own services, its directory, and that there are more.
    for (dir, expected) in [(&a, a.to_str()), (&b, b.to_str()), (&none, Some(" - "))] {
        let listed = from(&cli, dir, &["ps"]);
        let rows: Vec<&str> = listed.out.lines().skip(1).collect();
        assert_eq!(rows.len(), 1, "{listed:?}");
        assert!(rows[0].contains(expected.unwrap()), "{listed:?}");
        assert!(
            listed.err.contains("2 more in other workspaces") && listed.err.contains("--all-work"),
            "{listed:?}"
        );
    }
    let all = ok(&cli, &none, &["ps", "-q", "--all-workspaces"]);
    assert_eq!(all, "web\nweb\nweb");

    // A directory without a workspace stops no services of one.
    let nothing = from(&cli, &none, &["down"]);
    assert_eq!(nothing.code, 64, "{nothing:?}");
    ok(&cli, &none, &["stop", "web"]);
    let gone = from(&cli, &none, &["stop", "--all-workspaces", "web"]);
    assert!(gone.err.contains("several are called so"), "{gone:?}");
    assert_eq!(ok(&cli, &a, &["down"]), "web stopped");
    assert_eq!(ok(&cli, &a, &["ps", "-q"]), "");
    assert_eq!(ok(&cli, &sub, &["ps", "-q"]), "web");

    // A service of another workspace is addressed by its id; the error for the name contains it.
    let api = from(&cli, &a, &["why", "web"]);
    assert_eq!(api.code, 0, "{api:?}");
    std::fs::write(a.join("ostler.toml"), format!("[services.api]\n{STAYS}")).unwrap();
    ok(&cli, &sub, &["start", "-n", "only", "--", "sleep", "300"]);
    let unknown = from(&cli, &a, &["stop", "only"]);
    assert_eq!(unknown.code, 66, "{unknown:?}");
    assert!(
        unknown.err.contains("in another workspace: ") && unknown.err.contains("/b"),
        "{unknown:?}"
    );
    ok(&cli, &a, &["stop", "--all-workspaces", "only"]);
    assert_eq!(
        ok(&cli, &none, &["down", "--all-workspaces"]),
        "web stopped"
    );
    assert_eq!(ok(&cli, &none, &["ps", "-q", "--all-workspaces"]), "");
}

#[test]
fn a_task_that_others_need_completed_is_no_failure_and_runs_once() {
    let cli = CliEnv::new();
    let toml = format!(
        "[services.migrate]\ncommand = \"echo once >> migrated\"\n\
         [services.api]\n{STAYS}depends_on = {{ migrate = \"completed\" }}\n"
    );
    let dir = workspace(&cli, "a", Some(&toml));
    let up = from(&cli, &dir, &["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert!(up.out.contains("migrate completed: exit code 0"), "{up:?}");
    let runs = || std::fs::read_to_string(dir.join("migrated")).unwrap();
    assert_eq!(runs(), "once\n");
    let again = from(&cli, &dir, &["up"]);
    assert_eq!((again.code, runs()), (0, "once\n".to_owned()), "{again:?}");
    // Requested alone, it runs, and its end is reported.
    let alone = ok(&cli, &dir, &["up", "migrate"]);
    assert_eq!(alone, "migrate completed: exit code 0");
    assert_eq!(runs(), "once\nonce\n");
    ok(&cli, &dir, &["down"]);

    let toml = toml.replace("echo once >> migrated", "echo no table; exit 3");
    std::fs::write(dir.join("ostler.toml"), toml).unwrap();
    let failed = from(&cli, &dir, &["up"]);
    assert_ne!(failed.code, 0, "{failed:?}");
    assert!(failed.err.contains("exit code 3"), "{failed:?}");
}

#[test]
fn what_was_started_by_name_is_found_by_name() {
    let cli = CliEnv::new();
    for (name, toml) in [
        ("none", None),
        ("some", Some("[services.other]\ncommand = \"true\"\n")),
    ] {
        let dir = workspace(&cli, name, toml);
        ok(&cli, &dir, &["start", "-n", "mine", "--", "sleep", "300"]);
        let again = ok(&cli, &dir, &["ensure", "mine"]);
        assert!(again.contains("\nreused: running for"), "{again}");
        ok(&cli, &dir, &["stop", "mine"]);
        let anew = ok(&cli, &dir, &["ensure", "mine"]);
        assert!(!anew.contains("reused"), "{anew}");
        ok(&cli, &dir, &["stop", "mine"]);
    }
}
