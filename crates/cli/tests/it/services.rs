use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use rustix::process::Signal;

use crate::test_env::{CliEnv, CommandOutput, LineChild, wait_readable};

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The command of a file server on this port.
fn server(port: u16) -> Vec<String> {
    let port = port.to_string();
    ["python3", "-m", "http.server", "--bind", "127.0.0.1", &port]
        .map(str::to_owned)
        .to_vec()
}

fn service(cli: &CliEnv, words: &[&str], command: &[String]) -> CommandOutput {
    let mut all = vec!["service"];
    all.extend(words);
    if !command.is_empty() {
        all.push("--");
    }
    all.extend(command.iter().map(String::as_str));
    cli.ostler(&all)
}

#[test]
fn a_server_is_started_reported_listed_and_stopped() {
    let cli = CliEnv::new();
    let port = free_port();
    let started = service(&cli, &["start", "--name", "files"], &server(port));
    assert_eq!(started.code, 0, "{started:?}");
    let first = started.out.lines().next().unwrap();
    assert!(
        first.starts_with("Service started with ID: ")
            && first.ends_with(". Status: ready. The service is running in the background."),
        "{first}"
    );
    assert!(started.out.contains("\nURL: http://"), "{}", started.out);
    TcpStream::connect(("127.0.0.1", port)).unwrap();

    let table = cli.stdout_of(&["service", "ps"]);
    let heading: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    let headings = "NAME WORKSPACE STATUS URL PORTS PID RESTARTS UPTIME COMMAND";
    assert_eq!(heading.join(" "), headings);
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with("files") && row.contains(" ready "), "{row}");
    let list = cli.json(&["service", "ps", "--json"]);
    let id = list[0]["execution"]["id"].as_str().unwrap().to_owned();

    assert!(
        cli.stdout_of(&["ps"]).contains(" ready "),
        "{}",
        cli.stdout_of(&["ps"])
    );
    let info = cli.stdout_of(&["info", &id]);
    assert!(
        info.contains("url ") && info.contains("evidence "),
        "{info}"
    );
    assert_eq!(cli.stdout_of(&["wait", "--ready", &id]), "");
    assert!(
        cli.stdout_of(&["service", "why", "files"])
            .starts_with("files is ready: ")
    );
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    cli.stdout_of(&["service", "logs", "files"]);

    let again = service(&cli, &["ensure", "files"], &server(port));
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.out.contains(&id), "{}", again.out);

    let stopped = cli.stdout_of(&["service", "stop", "files"]);
    assert_eq!(stopped, format!("files stopped; port {port} free"));
    assert_eq!(cli.stdout_of(&["service", "ps", "-q"]), "");
    assert_eq!(cli.stdout_of(&["service", "ps", "-aq"]), "files");
}

#[test]
fn a_failure_is_reported_with_its_last_lines() {
    let cli = CliEnv::new();
    let script = "echo cannot go on >&2; exit 3";
    let command = ["sh", "-c", script].map(str::to_owned);
    let bad = service(
        &cli,
        &["start", "-n", "bad", "--ready-when", "listening"],
        &command,
    );
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(
        bad.out.starts_with("Service failed to become ready: "),
        "{}",
        bad.out
    );
    assert!(bad.out.contains("cannot go on"), "{}", bad.out);
    assert!(bad.out.contains("\nWhy: "), "{}", bad.out);
    let missing = service(&cli, &["start"], &["no-such-program-here".to_owned()]);
    assert_ne!(missing.code, 0);
    assert!(
        missing.err.contains("Failed to start service: "),
        "{}",
        missing.err
    );
}

#[test]
fn a_wait_that_takes_too_long_or_is_interrupted_leaves_it_running() {
    let cli = CliEnv::new();
    let sleep = ["sleep", "300"].map(str::to_owned);
    let words = [
        "start",
        "-n",
        "slow",
        "--ready-when",
        "listening",
        "--timeout",
        "200ms",
    ];
    let late = service(&cli, &words, &sleep);
    assert_eq!(late.code, 75, "{late:?}");
    assert!(
        late.out.starts_with(
            "Service failed to become ready: not ready within 200ms\nIt is still running: ID "
        ),
        "{}",
        late.out
    );
    assert_eq!(cli.stdout_of(&["service", "ps", "-q"]), "slow");

    let words = [
        "service",
        "start",
        "-n",
        "two",
        "--ready-when",
        "listening",
        "--",
        "sh",
        "-c",
    ];
    let script = format!("echo up > {}/up; exec sleep 300", cli.path().display());
    let mut command = cli.command(&[&words[..], &[script.as_str()]].concat());
    let fifo = cli.path().join("up");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from(0o600)).unwrap();
    command.stderr(Stdio::piped());
    let mut waiting = LineChild::start(command);
    // Its process runs, so the wait has begun or is about to.
    let mut up = String::new();
    std::fs::File::open(&fifo)
        .unwrap()
        .read_to_string(&mut up)
        .unwrap();
    let mut stderr = waiting.child.stderr.take().unwrap();
    waiting.send(Signal::INT);
    let code = waiting.end();
    let mut message = String::new();
    wait_readable(&stderr);
    stderr.read_to_string(&mut message).unwrap();
    assert_eq!(code, 130, "{message}");
    assert!(
        message.contains("two") || message.contains("service ps"),
        "{message}"
    );
    assert_eq!(cli.stdout_of(&["service", "ps", "-q"]).lines().count(), 2);
    cli.stdout_of(&["service", "stop", "--force", "slow", "two"]);
}

#[test]
fn up_and_down_follow_ostler_toml() {
    let cli = CliEnv::new();
    let (one, two) = (free_port(), free_port());
    let toml = format!(
        "[services.web]\ncommand = \"python3 -m http.server --bind 127.0.0.1 {one}\"\n\
         depends_on = [\"db\"]\n\n\
         [services.db]\ncommand = [\"python3\", \"-m\", \"http.server\", \"--bind\", \
         \"127.0.0.1\", \"{two}\"]\n"
    );
    std::fs::write(cli.path().join("ostler.toml"), toml).unwrap();
    let up = service(&cli, &["up"], &[]);
    assert_eq!(up.code, 0, "{up:?}");
    let names: Vec<&str> = up.out.lines().filter(|line| line.ends_with(':')).collect();
    assert_eq!(names, ["db:", "web:"], "{}", up.out);
    assert_eq!(up.out.matches("Service started with ID: ").count(), 2);
    let again = cli.json(&["service", "up", "--json"]);
    assert!(
        again
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["reused"] == true),
        "{again}"
    );
    let down = cli.stdout_of(&["service", "down"]);
    let stopped: Vec<&str> = down.lines().collect();
    assert_eq!(stopped.len(), 2, "{down}");
    assert!(
        stopped[0].starts_with("web stopped") && stopped[1].starts_with("db stopped"),
        "{down}"
    );
    TcpListener::bind(("127.0.0.1", one)).unwrap();
    TcpListener::bind(("127.0.0.1", two)).unwrap();
}

#[test]
fn mistakes_are_met_with_what_was_meant() {
    let cli = CliEnv::new();
    let none = service(&cli, &["up"], &[]);
    assert_eq!(none.code, 64, "{none:?}");
    let here = cli.path().display().to_string();
    assert!(
        none.err.contains("there is no ostler.toml; looked in ") && none.err.contains(&here),
        "{}",
        none.err
    );
    assert!(none.err.contains("[services.web]"), "{}", none.err);

    let toml = "[services.web]\ncommand = \"true\"\nrestrat = \"always\"\n";
    std::fs::write(cli.path().join("ostler.toml"), toml).unwrap();
    let bad = service(&cli, &["up"], &[]);
    assert_eq!(bad.code, 64, "{bad:?}");
    assert!(
        bad.err.contains("ostler.toml: line 3") && bad.err.contains("restart"),
        "{}",
        bad.err
    );

    std::fs::write(
        cli.path().join("ostler.toml"),
        "[services.web]\ncommand = \"true\"\n",
    )
    .unwrap();
    for verb in ["why", "stop", "logs", "restart"] {
        let slip = service(&cli, &[verb, "wbe"], &[]);
        assert_eq!(slip.code, 66, "{verb}: {slip:?}");
        assert!(
            slip.err.contains("did you mean web?"),
            "{verb}: {}",
            slip.err
        );
    }
    let never = service(&cli, &["logs", "web"], &[]);
    assert!(never.err.contains("web never ran"), "{}", never.err);
    let policy = service(
        &cli,
        &["start", "--restart", "sometimes"],
        &["true".to_owned()],
    );
    assert_eq!(policy.code, 64);
    assert!(policy.err.contains("on-failure"), "{}", policy.err);
}

#[test]
fn definitions_and_detection_start_nothing() {
    let cli = CliEnv::new();
    let found = cli.json(&[
        "service",
        "detect",
        "--json",
        "--",
        "python3 -m http.server 8123",
    ]);
    assert_eq!(found["service"]["port"], 8_123, "{found}");
    let none = service(&cli, &["detect"], &["ls".to_owned()]);
    assert_eq!(
        (none.code, none.out.contains("no service")),
        (1, true),
        "{none:?}"
    );
    let port = free_port();
    let defined = service(&cli, &["define", "files"], &server(port));
    assert_eq!(
        (defined.code, defined.out.trim()),
        (0, "files"),
        "{defined:?}"
    );
    assert_eq!(cli.stdout_of(&["service", "ps", "-aq"]), "files");
    assert_eq!(cli.stdout_of(&["ps", "-aq"]), "");
    let started = service(&cli, &["ensure", "files"], &[]);
    assert_eq!(started.code, 0, "{started:?}");
    assert_eq!(cli.stdout_of(&["service", "forget", "files"]), "files");
    assert_eq!(cli.stdout_of(&["service", "ps", "-q"]), "files");
    cli.stdout_of(&["service", "stop", "files"]);
}

#[test]
fn settings_of_services_are_refused_clearly() {
    let cli = CliEnv::new();
    for (given, message) in [
        (
            "services.lease_ports=80-90",
            "two ports such as 20000-29999",
        ),
        (
            "services.lease_ports=9000-8000",
            "two ports such as 20000-29999",
        ),
        ("services.automatic=perhaps", "true or false"),
    ] {
        let ran = cli.ostler(&["--set", given, "config", "explain"]);
        assert_eq!(ran.code, 78, "{given}");
        assert!(ran.err.contains(message), "{}", ran.err);
    }
    let table = cli.path().join("config/ostler");
    std::fs::create_dir_all(&table).unwrap();
    std::fs::write(
        table.join("config.toml"),
        "[services]\ntable = \"mine.toml\"\n",
    )
    .unwrap();
    let ran = service(&cli, &["ps"], &[]);
    assert_eq!(ran.code, 78, "{ran:?}");
    let file = table.join("mine.toml").display().to_string();
    assert!(
        ran.err.contains(&file) && ran.err.contains("config.toml:2"),
        "{}",
        ran.err
    );
    let mut command = cli.command(&["service", "ps"]);
    command.env("OSTLER_SERVICES_TABLE", "mine.toml");
    assert_eq!(
        crate::test_env::to_output(command.output().unwrap()).code,
        78
    );
}
