//! Containers at the command line, where no container engine is.

use std::fs;

use crate::test_env::{CliEnv, CommandOutput, to_output};

/// Runs the program in a project, with a container engine that is away.
fn run(cli: &CliEnv, words: &[&str]) -> CommandOutput {
    let project = cli.path().join("project");
    fs::create_dir_all(&project).unwrap();
    let mut command = cli.command(words);
    command
        .current_dir(&project)
        .env("OSTLER_CONTAINER_SOCKET", cli.path().join("away.sock"));
    to_output(command.output().unwrap())
}

#[test]
fn a_container_needs_an_image() {
    let cli = CliEnv::new();
    let refused = run(&cli, &["run", "--isolation", "container", "true"]);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.err.contains("container.image"), "{refused:?}");
    let refused = run(&cli, &["run", "--backend", "container", "true"]);
    assert!(refused.err.contains("container.image"), "{refused:?}");
}

#[test]
fn flags_of_containers_and_of_other_levels_exclude_each_other() {
    let cli = CliEnv::new();
    for (words, expected) in [
        (
            &["--isolation", "container", "--overlay"][..],
            "only at isolation level high",
        ),
        (
            &["--isolation", "high", "--image", "x"],
            "--isolation container",
        ),
        (&["--backend", "local", "--user", "5"], "--user"),
        (&["--backend", "slurm"], "local, container"),
        (&["--volume", "/a"], "HOST:CONTAINER"),
    ] {
        let refused = run(&cli, &[&["run"][..], words, &["true"]].concat());
        assert_eq!(refused.code, 64, "{refused:?}");
        assert!(refused.err.contains(expected), "{refused:?}");
    }
}

#[test]
fn flags_of_containers_reach_the_engine() {
    let cli = CliEnv::new();
    for (flags, expected) in [
        (&["--network", "host"][..], "network 'host'"),
        (&["--network", "office"], "container.networks"),
        (&["--user", "root"], "container.users"),
        (&["--cap-add", "NET_RAW"], "container.capabilities"),
        (&["--dns", "dns.example"], "name server"),
        (&["--proxy", "here"], "proxy"),
        (&["--writable-root"], "container.allow_writable_root"),
        (&["--volume", ".:/x"], "container.volumes"),
        (&["--workspace", "/tmp"], "workspace"),
    ] {
        let words = [&["run", "--image", "work"][..], flags, &["true"]].concat();
        let refused = run(&cli, &words);
        assert_eq!(refused.code, 64, "{refused:?}");
        assert!(refused.err.contains(expected), "{refused:?}");
    }
}

#[test]
fn without_an_engine_the_sockets_that_were_tried_are_named_and_nothing_starts() {
    let cli = CliEnv::new();
    let socket = cli.path().join("away.sock").display().to_string();
    for words in [
        &["run", "--image", "work", "true"][..],
        &[
            "service", "start", "--image", "work", "--name", "web", "true",
        ],
        &["image", "ls"],
        &["image", "pull", "work"],
    ] {
        let refused = run(&cli, words);
        assert_eq!(refused.code, 78, "{refused:?}");
        assert!(refused.err.contains(&socket), "{refused:?}");
    }
    assert_eq!(run(&cli, &["ps", "-aq"]).out, "");
    let examined = run(&cli, &["doctor"]);
    assert!(examined.out.contains(&socket), "{examined:?}");
}
