use crate::test_env::{CliEnv, LineChild};

const NUMBERS: &str = "for i in $(seq 20); do echo line $i; done; echo oops >&2; printf rest";

fn ended(cli: &CliEnv, script: &str) -> String {
    let id = cli.background(script);
    cli.ostler(&["wait", &id]);
    id
}

#[test]
fn lines_are_chosen_by_count_stream_and_pattern() {
    let cli = CliEnv::new();
    let id = ended(&cli, NUMBERS);
    let logs = |args: &[&str]| cli.stdout_of(&[&["logs", "--no-time", &id], args].concat());
    let all = logs(&["--stream", "stdout"]);
    assert_eq!(all.lines().count(), 21, "{all}");
    assert!(
        all.starts_with("line 1\n") && all.ends_with("rest"),
        "{all}"
    );
    assert_eq!(logs(&["--head", "2"]), "line 1\nline 2");
    assert_eq!(logs(&["--stream", "stdout", "-n", "2"]), "line 20\nrest");
    assert_eq!(logs(&["--stream", "stderr"]), "oops");
    assert_eq!(logs(&["--grep", r"line (?=7|1$)"]), "line 1\nline 7");
    assert_eq!(
        logs(&["--grep", r"1\d", "--grep-mode", "content", "--head", "2"]),
        "10\n11"
    );
    assert_eq!(logs(&["--grep", "nothing"]), "");
}

#[test]
fn times_are_shown_and_requested() {
    let cli = CliEnv::new();
    let id = ended(&cli, "echo one");
    let shown = cli.stdout_of(&["logs", &id]);
    let (date, rest) = shown.split_once(' ').unwrap();
    let (time, text) = rest.split_once(' ').unwrap();
    assert_eq!((date.len(), time.len(), text), (10, 12, "one"));
    assert_eq!(
        cli.stdout_of(&["logs", "--no-time", "--since", "10m", &id]),
        "one"
    );
    assert_eq!(
        cli.stdout_of(&["logs", "--no-time", "--until", "10m", &id]),
        ""
    );
    assert_eq!(cli.stdout_of(&["logs", "--since", "2999-01-01", &id]), "");
}

#[test]
fn raw_bytes_go_where_they_came_from() {
    let cli = CliEnv::new();
    let id = ended(&cli, r"printf 'a\377\nb'; printf c >&2");
    let output = cli.command(&["logs", "--raw", &id]).output().unwrap();
    assert_eq!(output.stdout, b"a\xff\nb");
    assert_eq!(output.stderr, b"c");
}

#[test]
fn json_gives_one_document_per_line() {
    let cli = CliEnv::new();
    let id = ended(&cli, "echo one; echo two");
    let shown = cli.stdout_of(&["logs", "--json", &id]);
    let texts: Vec<String> = shown
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].to_string())
        .collect();
    assert_eq!(texts, ["\"one\"", "\"two\""]);
}

#[test]
fn following_shows_lines_as_they_come_and_ends_with_the_command() {
    let cli = CliEnv::new();
    let go = cli.path().join("go");
    let script = format!(
        "mkfifo {go}; echo first; printf half; read x < {go}; echo ' whole'; echo skip; echo last",
        go = go.display()
    );
    let id = cli.background(&script);
    let mut all = LineChild::start(cli.command(&["logs", "-f", "--no-time", &id]));
    let mut some = LineChild::start(cli.command(&["logs", "-f", "--no-time", "-g", "[tf]", &id]));
    assert_eq!(all.next(), "first");
    assert_eq!(some.next(), "first");
    let mut late = LineChild::start(cli.command(&["logs", "-f", "-n", "2", "--no-time", &id]));
    assert_eq!(late.next(), "first");
    std::fs::write(&go, "x\n").unwrap();
    for line in ["half whole", "skip", "last", ""] {
        assert_eq!((all.next().as_str(), late.next().as_str()), (line, line));
    }
    for line in ["half whole", "last", ""] {
        assert_eq!(some.next(), line);
    }
    assert_eq!((all.end(), some.end(), late.end()), (0, 0, 0));
}

#[test]
fn following_what_has_ended_ends_at_once() {
    let cli = CliEnv::new();
    let id = ended(&cli, "echo one; printf two");
    let logs = |args: &[&str]| cli.stdout_of(&[&["logs", "-f", &id], args].concat());
    assert_eq!(logs(&["--no-time"]), "one\ntwo");
    assert_eq!(logs(&["--no-time", "-n", "1"]), "two");
    assert_eq!(logs(&["--raw"]), "one\ntwo");
}

#[test]
fn many_lines_come_in_pages_without_loss() {
    let cli = CliEnv::new();
    let id = ended(&cli, "seq 25000");
    let all = cli.stdout_of(&["logs", "--no-time", &id]);
    let numbers: Vec<u32> = all.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=25_000).collect::<Vec<_>>());
    let head = cli.stdout_of(&["logs", "--no-time", "--head", "12345", &id]);
    assert_eq!(head.lines().count(), 12_345);
    let tail = cli.stdout_of(&["logs", "--no-time", "--tail", "12345", &id]);
    assert_eq!(tail.lines().next(), Some("12656"));
    assert_eq!(tail.lines().count(), 12_345);
}

#[test]
fn the_encoding_of_the_request_is_used() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&[
        "run",
        "-d",
        "--encoding",
        "gbk",
        "printf",
        r"\304\343\272\303\n",
    ]);
    cli.stdout_of(&["wait", &id]);
    assert_eq!(cli.stdout_of(&["logs", "--no-time", &id]), "你好");
}

#[test]
fn cleared_output_is_gone_while_it_runs() {
    let cli = CliEnv::new();
    let go = cli.path().join("go");
    let script = format!(
        "mkfifo {0}; echo before; read x < {0}; echo after",
        go.display()
    );
    let id = cli.background(&script);
    LineChild::start(cli.command(&["logs", "-f", &id])).until("before");
    assert_eq!(
        cli.stdout_of(&["clear", &id]),
        format!("{id}: 7 bytes dropped")
    );
    std::fs::write(&go, "x\n").unwrap();
    cli.stdout_of(&["wait", &id]);
    assert_eq!(cli.stdout_of(&["logs", "--no-time", &id]), "after");
}

#[test]
fn output_is_exported() {
    let cli = CliEnv::new();
    let id = ended(&cli, "echo one; echo two");
    assert_eq!(cli.stdout_of(&["export", "-f", "text", &id]), "one\ntwo");
    let file = cli.path().join("out.jsonl");
    cli.stdout_of(&["export", "-o", file.to_str().unwrap(), &id]);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.lines()
            .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
    for format in ["yaml", "avro", "asciicast"] {
        let output = cli
            .command(&["export", "-f", format, &id])
            .output()
            .unwrap();
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{format}"
        );
    }
}
