use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;

use crate::test_env::{CliEnv, LineChild, to_output};

#[test]
fn streams_and_exit_code_pass_through() {
    let cli = CliEnv::new();
    let ran = cli.ostler(&["run", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (3, "out\n", "err\n")
    );
    assert_eq!(cli.ostler(&["run", "true"]).code, 0);
    assert_eq!(
        cli.ostler(&["run", "sh", "-c", "kill -SEGV $$"]).code,
        128 + 11
    );
}

#[test]
fn arguments_arrive_verbatim() {
    let cli = CliEnv::new();
    let words = [
        "run", "printf", "%s|", "$(id)", "; rm", "-x", "--", "a b", "*", "",
    ];
    assert_eq!(cli.stdout_of(&words), "$(id)|; rm|-x|--|a b|*||");
}

#[test]
fn programs_that_cannot_run_exit_as_in_a_shell() {
    let cli = CliEnv::new();
    let missing = cli.ostler(&["run", "no-such-program"]);
    assert_eq!(missing.code, 127);
    assert!(
        missing.err.starts_with("error[command_execution_error]:"),
        "{}",
        missing.err
    );
    let file = cli.path().join("plain");
    std::fs::write(&file, "x").unwrap();
    let plain = cli.ostler(&["run", file.to_str().unwrap()]);
    assert_eq!(plain.code, 126, "{plain:?}");
}

#[test]
fn environment_and_directory_are_those_of_the_command_line() {
    let cli = CliEnv::new();
    let mut command = cli.command(&[
        "run",
        "--cwd",
        "state",
        "-e",
        "A=b=c",
        "-e",
        "PASSED",
        "sh",
        "-c",
        r#"echo "$A $PASSED $OWN $HOME"; pwd"#,
    ]);
    std::fs::create_dir_all(cli.path().join("state")).unwrap();
    let ran = to_output(
        command
            .env("PASSED", "yes")
            .env("OWN", "too")
            .output()
            .unwrap(),
    );
    let here = cli.path().display();
    assert_eq!(ran.out, format!("b=c yes too {here}\n{here}/state\n"));
}

#[test]
fn input_of_pipes_and_files_goes_in() {
    let cli = CliEnv::new();
    let mut cat = LineChild::start(cli.command(&["run", "cat"]));
    let stdin = cat.stdin.as_mut().unwrap();
    stdin.write_all(b"one\n").unwrap();
    assert_eq!(cat.next(), "one");
    cat.stdin.as_mut().unwrap().write_all(b"two\n").unwrap();
    assert_eq!(cat.next(), "two");
    assert_eq!(cat.end(), 0);

    let file = cli.path().join("input");
    for size in [10, 1_000_000] {
        std::fs::write(&file, vec![b'x'; size]).unwrap();
        let mut command = cli.command(&["run", "wc", "-c"]);
        let output = command
            .stdin(std::fs::File::open(&file).unwrap())
            .output()
            .unwrap();
        assert_eq!(to_output(output).out.trim(), size.to_string());
    }
}

#[test]
fn more_input_than_a_pipe_holds_waits_for_a_slow_reader() {
    let cli = CliEnv::new();
    let mut reader =
        LineChild::start(cli.command(&["run", "sh", "-c", "echo ready; read x; wc -c"]));
    assert_eq!(reader.next(), "ready");
    let mut stdin = reader.stdin.take().unwrap();
    stdin.write_all(b"go\n").unwrap();
    stdin.write_all(&vec![b'x'; 3_000_000]).unwrap();
    drop(stdin);
    assert_eq!(reader.next().trim(), "3000000");
    assert_eq!(reader.end(), 0);
}

#[test]
fn signals_reach_the_command() {
    let cli = CliEnv::new();
    let script = "trap 'echo got INT; exit 7' INT; echo ready; while :; do sleep 0.05; done";
    let mut run = LineChild::start(cli.command(&["run", "sh", "-c", script]));
    assert_eq!(run.next(), "ready");
    run.send(Signal::INT);
    assert_eq!(run.next(), "got INT");
    assert_eq!(run.end(), 7);
    for (signal, number) in [(Signal::TERM, 15), (Signal::QUIT, 3), (Signal::HUP, 1)] {
        let mut run =
            LineChild::start(cli.command(&["run", "sh", "-c", "echo ready; exec sleep 60"]));
        assert_eq!(run.next(), "ready");
        run.send(signal);
        assert_eq!(run.end(), 128 + number);
    }
}

#[test]
fn a_time_limit_ends_it_with_124() {
    let cli = CliEnv::new();
    let ran = cli.ostler(&["run", "--timeout", "300ms", "sleep", "60"]);
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(ran.err.contains("timed out"), "{}", ran.err);
    let idle = cli.ostler(&["run", "--idle-timeout", "300ms", "sleep", "60"]);
    assert_eq!(idle.code, 124, "{idle:?}");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let cli = CliEnv::new();
    let mut command = cli.command(&["run", "yes"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(to_output(output).code, 141);
    assert_eq!(cli.stdout_of(&["ps", "-q"]), "");
    let info = cli.json(&["ps", "-a", "--json"]);
    assert_eq!(info[0]["stop_reason"], "nobody reads its output any more");
}

#[test]
fn no_daemon_is_needed() {
    let cli = CliEnv::new();
    let alone = cli.ostler(&["run", "--no-daemon", "sh", "-c", "echo alone; exit 4"]);
    assert_eq!(
        (alone.code, alone.out.as_str()),
        (4, "alone\n"),
        "{alone:?}"
    );
    assert!(cli.daemon().is_none());
    assert_eq!(cli.stdout_of(&["run", "echo", "with"]), "with");
    let beside = cli.ostler(&["run", "--no-daemon", "echo", "beside"]);
    assert_eq!((beside.code, beside.out.as_str()), (0, "beside\n"));
    assert!(beside.err.contains("goes with it"), "{}", beside.err);
    let left = std::fs::read_dir(cli.path()).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        names
            .iter()
            .all(|name| !name.display().to_string().contains("alone")),
        "{names:?}"
    );
}

#[test]
fn ten_megabytes_pass_through_whole() {
    numbers_pass_through(1_500_000, 10_888_896);
}

#[test]
fn full_a_hundred_megabytes_pass_through_whole() {
    numbers_pass_through(13_000_000, 105_888_897);
}

fn numbers_pass_through(lines: usize, bytes: u64) {
    let cli = CliEnv::new();
    let mut command = cli.command(&["run", "sh", "-c", &format!("seq {lines}")]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut count = Counter::default();
    std::io::copy(child.stdout.as_mut().unwrap(), &mut count).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!((count.bytes, count.lines), (bytes, lines));
}

#[derive(Default)]
struct Counter {
    bytes: u64,
    lines: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
