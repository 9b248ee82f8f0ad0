use crate::test_env::{CliEnv, to_output};

#[test]
fn explain_shows_each_value_and_where_it_came_from() {
    let cli = CliEnv::new();
    let directory = cli.path().join("config/ostler");
    std::fs::create_dir_all(&directory).unwrap();
    let file = "default_encoding = \"gbk\"\n\n[retention]\npty_seconds = \"forever\"\n";
    std::fs::write(directory.join("config.toml"), file).unwrap();
    let mut command = cli.command(&["--set", "stop.grace_ms=100", "config", "explain"]);
    command.env("ALLOWED_COMMANDS", "ls,git");
    let shown = to_output(command.output().unwrap());
    let here = cli.path().display().to_string();
    let shown: Vec<String> = shown
        .out
        .replace(&here, "~")
        .lines()
        .filter(|line| !line.contains("/etc/ostler"))
        .map(|line| {
            line.split("  ")
                .filter(|cell| !cell.is_empty())
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn explain_gives_json_and_single_keys() {
    let cli = CliEnv::new();
    let all = cli.json(&["config", "explain", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 101);
    let one = cli.json(&["config", "explain", "--json", "stop.grace_ms"]);
    assert_eq!(one[0]["value"], 5_000);
    assert_eq!(one[0]["source"], "default");
    for (key, default) in [
        ("quotas.finite_per_session", 20),
        ("quotas.others_per_principal", 1_000),
        ("ledger.retention_days", 90),
        ("retention.command_seconds", 3_600),
    ] {
        let shown = cli.json(&["config", "explain", "--json", key]);
        assert_eq!(shown[0]["value"], default, "{key}");
        assert_eq!(shown[0]["source"], "default", "{key}");
    }
    let slip = cli.ostler(&["config", "explain", "stop.grace"]);
    assert_eq!(slip.code, 64);
    assert!(
        slip.err.contains("did you mean stop.grace_ms?"),
        "{}",
        slip.err
    );
}

#[test]
fn a_bad_value_stops_the_start() {
    let cli = CliEnv::new();
    for verb in [&["serve"][..], &["mcp"], &["ps"], &["run", "true"]] {
        let mut command = cli.command(verb);
        command.env("PROCESS_RETENTION_SECONDS", "soon");
        let ran = to_output(command.output().unwrap());
        assert_eq!(ran.code, 78, "{verb:?}");
        assert!(
            ran.err.contains("retention.command_seconds = \"soon\""),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains("environment PROCESS_RETENTION_SECONDS"),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains("hint: allowed: whole seconds"),
            "{}",
            ran.err
        );
    }
    assert!(!cli.state().exists());
}

#[test]
fn a_state_directory_that_cannot_be_used_is_reported() {
    let cli = CliEnv::new();
    std::fs::write(cli.path().join("file"), "").unwrap();
    let ran = cli.ostler(&["--state-dir", "file/x", "ps"]);
    assert_eq!(ran.code, 74, "{ran:?}");
    assert!(ran.err.contains("file/x cannot be used"), "{}", ran.err);
}

#[test]
fn completions_are_scripts() {
    let cli = CliEnv::new();
    let script = cli.stdout_of(&["completions", "bash"]);
    // Longer than one argument may be.
    let file = cli.path().join("completions.bash");
    std::fs::write(&file, script).unwrap();
    let checked = std::process::Command::new("bash")
        .arg("-n")
        .arg(&file)
        .status()
        .unwrap();
    assert!(checked.success());
    for shell in ["zsh", "fish"] {
        assert!(cli.stdout_of(&["completions", shell]).contains("ostler"));
    }
}

#[test]
fn version_and_help_start_nothing() {
    let cli = CliEnv::new();
    assert!(cli.stdout_of(&["version"]).ends_with("daemon not running"));
    let help = cli.stdout_of(&["--help"]);
    assert!(
        help.contains("Exit codes:") && help.contains("127"),
        "{help}"
    );
    assert!(!cli.state().exists());
}

#[test]
fn a_relative_file_means_the_same_to_the_daemon_it_starts() {
    let cli = CliEnv::new();
    std::fs::write(cli.path().join("here.toml"), "default_encoding = \"gbk\"\n").unwrap();
    let script = ["run", "printf", r"\304\343"];
    let mut words = vec!["--config", "here.toml"];
    words.extend(script);
    let shown = to_output(cli.command(&words).output().unwrap());
    assert_eq!(shown.code, 0, "{}", shown.err);
    let id = cli.stdout_of(&["ps", "-aq"]);
    let shown = cli.stdout_of(&["logs", "--no-time", id.trim()]);
    assert_eq!(shown.trim(), "你");
}
