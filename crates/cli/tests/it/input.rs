//! Invalid input: the error names it and what is allowed; nothing is started.

use crate::test_env::CliEnv;

/// The arguments, the exit code, and a text that the error must contain.
type Case<'a> = (&'a [&'a str], i32, &'a str);

/// How the result of a case differs from the expected one.
fn mismatch(cli: &CliEnv, (args, code, message): &Case<'_>) -> Option<String> {
    let ran = cli.ostler(args);
    let good = ran.code == *code && ran.err.contains(message) && ran.out.is_empty();
    let shown = args.iter().map(|arg| arg.chars().take(40).collect());
    let shown: Vec<String> = shown.collect();
    (!good).then(|| format!("{shown:?}: wanted {code} and '{message}': {ran:?}"))
}

#[test]
fn invalid_isolation_options_are_reported_with_what_is_allowed() {
    let cli = CliEnv::new();
    let cases: &[Case<'_>] = &[
        (&["run", "--network", "a.example", "true"], 64, "high"),
        (
            &["run", "--network", "https://a.example", "true"],
            64,
            "--network: 'https://a.example'",
        ),
        (
            &["run", "--allow-degraded", "moat", "true"],
            64,
            "landlock, seccomp",
        ),
        (&["run", "--memory", "much", "true"], 64, "512M"),
        (&["run", "--cpus", "0", "true"], 64, "0.5"),
        (&["run", "--secret", "1X", "true"], 64, "1X"),
    ];
    let missed: Vec<String> = cases.iter().filter_map(|it| mismatch(&cli, it)).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn bad_input_is_reported_with_code_and_exit() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&["run", "-d", "true"]);
    cli.stdout_of(&["wait", &id]);
    std::fs::write(cli.path().join("file"), "").unwrap();
    let cases: &[Case<'_>] = &[
        (&["run"], 64, "COMMAND"),
        (&["run", ""], 64, "value_error"),
        (&["run", "--cwd", "nowhere", "true"], 64, "nowhere"),
        (&["run", "--cwd", "file", "true"], 64, "file"),
        (&["run", "--encoding", "gkb", "true"], 64, "gkb"),
        (&["run", "--timeout", "-1", "true"], 64, "span"),
        (&["run", "--timeout", "soon", "true"], 64, "span"),
        (
            &["run", "--isolation", "total", "true"],
            64,
            "basic, medium, high or container",
        ),
        (
            &["doctor", "--user", "nobody-has-this-name"],
            64,
            "no such user",
        ),
        (&["run", "--env", "=x", "true"], 64, "name"),
        (
            &["run", "--env", "NO_SUCH_VARIABLE", "true"],
            64,
            "NO_SUCH_VARIABLE",
        ),
        (&["run", "--no-such-flag", "true"], 64, "--no-such-flag"),
        (&["logs", "nonsense"], 66, "process_not_found"),
        (&["logs", ""], 64, ""),
        (&["logs", "../../health"], 66, "process_not_found"),
        (&["logs", &id, "--grep", "("], 64, "position"),
        (&["logs", &id, "--since", "whenever"], 64, "since"),
        (&["logs", &id, "-n", "-5"], 64, "-5"),
        (&["logs", &id, "-n", "99999999999"], 64, "tail"),
        (&["logs", &id, "-f", "--until", "1m"], 64, "--until"),
        (&["logs", &id, "--raw", "--grep", "x"], 64, "--grep"),
        (&["kill", "-s", "NOPE", &id], 64, "signal"),
        (&["kill", "-s", "0", &id], 64, "signal"),
        (&["ps", "--status", "happy"], 64, "running, completed"),
        (&["ps", "-n", "0"], 64, "0"),
        (&["rm"], 64, "ID"),
        (&["rm", "--all", &id], 64, "--all"),
        (&["stop", &id, "--force", "--grace", "1s"], 64, "--grace"),
        (&["export", &id, "-f", "pdf"], 64, "yaml"),
        (&["frobnicate"], 64, "frobnicate"),
        (&["--set", "nonsense", "ps"], 64, "--set"),
        (&["--set", "stop.grace=1", "ps"], 78, "stop.grace_ms"),
        (&["--config", "/nowhere.toml", "ps"], 78, "/nowhere.toml"),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| mismatch(&cli, case))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cli.stdout_of(&["ps", "-aq"]), id);
}

#[test]
fn bad_input_of_terminals_is_reported_with_code_and_exit() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&["run", "-d", "true"]);
    cli.stdout_of(&["wait", &id]);
    let cases: &[Case<'_>] = &[
        (&["attach"], 64, "ID"),
        (&["attach", "nonsense"], 66, "session_not_found"),
        (&["attach", &id], 64, "no terminal"),
        (
            &["attach", &id, "--detach-key", "ctrl-m"],
            64,
            "allowed: none, ctrl-a",
        ),
        (
            &["attach", &id, "--watch", "--take-over"],
            64,
            "--take-over",
        ),
        (&["screen", "nonsense"], 66, "session_not_found"),
        (&["screen", &id], 64, "no terminal"),
        (&["send", &id], 64, "nothing to type"),
        (
            &["send", &id, "--key", "bogus"],
            64,
            "--key: 'bogus' is no key; allowed: enter",
        ),
        (&["send", &id, "--paste"], 64, "TEXT"),
        (&["send", &id, "x", "--raw"], 64, "--raw"),
        (&["resize", &id, "0x5"], 64, "120x40"),
        (&["resize", &id, "80x24"], 64, "no terminal"),
        (&["shell", "tcsh", "-d"], 64, "bash, zsh, fish"),
        (&["exec", &id], 64, "COMMAND"),
        (&["exec", &id, "--timeout", "soon", "true"], 64, "span"),
        (&["exec", &id, "true"], 64, "no terminal"),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| mismatch(&cli, case))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cli.stdout_of(&["ps", "-aq"]), id);
}

#[test]
fn names_that_are_no_text_pass() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let cli = CliEnv::new();
    let odd = OsStr::from_bytes(b"odd-\xff-name");
    std::fs::create_dir(cli.path().join(odd)).unwrap();
    let args = [
        OsStr::new("run"),
        OsStr::new("--cwd"),
        odd,
        OsStr::new("printf"),
        OsStr::new("%s"),
        odd,
    ];
    let output = cli.command(&args).output().unwrap();
    assert_eq!(output.stdout, b"odd-\xff-name", "{output:?}");
}

#[test]
fn a_pipe_that_closes_ends_us_quietly() {
    let cli = CliEnv::new();
    let id = cli.background("seq 200000");
    cli.stdout_of(&["wait", &id]);
    let mut command = cli.command(&["logs", &id]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ran = crate::test_env::to_output(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (141, ""));
}
