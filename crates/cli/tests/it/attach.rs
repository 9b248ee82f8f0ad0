//! Attaching from a terminal: attach to a session, detach, attach again.

use std::io::Write as _;
use std::process::Stdio;

use ostler_model::TermSize;
use rustix::process::Signal;

use crate::pty_user::{PtyUser, SIZE};
use crate::test_env::{CliEnv, LineChild, to_output, wait_process_stopped};

const DETACH: &str = "\x1cd";

/// A bash without startup files.
const BASH: [&str; 3] = ["bash", "--norc", "--noprofile"];

fn sit(cli: &CliEnv) -> PtyUser {
    let args: Vec<&str> = ["run", "-t", "-e", "PS1"].into_iter().chain(BASH).collect();
    let mut terminal = PtyUser::new(cli, &args);
    terminal.wait_text("$");
    terminal
}

/// The screen of a session as the daemon returns it.
fn screen(cli: &CliEnv, id: &str) -> String {
    cli.stdout_of(&["screen", id]).trim_end().to_owned()
}

#[test]
fn a_file_is_edited_in_vim() {
    let cli = CliEnv::new();
    let file = cli.path().join("note.txt");
    let mut vim = PtyUser::new(&cli, &["run", "-t", "vim", "-u", "NONE", "note.txt"]);
    vim.wait_text("note.txt");
    assert!(vim.view().alternate);
    assert!(!vim.has_original_settings());
    vim.type_in("ihello from here\x1b:wq\r");
    assert_eq!(vim.end(), 0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "hello from here\n");
    assert!(!vim.view().alternate);
}

#[test]
fn exit_codes_pass_and_output_is_as_printed() {
    let cli = CliEnv::new();
    let mut shell = PtyUser::new(&cli, &["run", "-t", "sh", "-c", "tty; stty size; exit 7"]);
    assert_eq!(shell.end(), 7);
    let text = shell.text();
    assert!(
        text.starts_with("/dev/pts/") && text.ends_with("\n24 80"),
        "{text}"
    );
    // Without a local terminal the session still has one, and the output is verbatim.
    let plain = cli.ostler(&[
        "run",
        "-t",
        "sh",
        "-c",
        "test -t 0 && printf 'a\\033[1mb\\n'",
    ]);
    assert_eq!(
        (plain.code, plain.out.as_str()),
        (0, "a\x1b[1mb\r\n"),
        "{plain:?}"
    );
}

#[test]
fn leaving_and_coming_back_shows_the_same() {
    let cli = CliEnv::new();
    let mut first = sit(&cli);
    first.type_in("echo one; echo two\r");
    first.wait_until(|text| text.contains("\ntwo\n"));
    first.type_in(DETACH);
    assert_eq!(first.end(), 0);
    assert!(
        first.text().contains("detached; `ostler attach"),
        "{}",
        first.text()
    );
    let id = cli.find_execution("bash");
    let expected = screen(&cli, &id);

    let mut second = PtyUser::new(&cli, &["attach", &id]);
    second.wait_until(|text| text == expected);
    second.type_in("echo $((6*7))\r");
    second.wait_until(|text| text.contains("\n42\n"));
    assert_eq!(second.text(), screen(&cli, &id));
    second.type_in("exit 5\r");
    assert_eq!(second.end(), 5);
}

#[test]
fn the_size_of_the_window_is_that_of_the_session_while_one_types() {
    let cli = CliEnv::new();
    let mut terminal = sit(&cli);
    terminal.resize(TermSize {
        cols: 100,
        rows: 30,
    });
    // The signal must have arrived before the shell is queried.
    let id = cli.find_execution("bash");
    let sized = |cols: u16| {
        let id = id.clone();
        let cli = &cli;
        move || cli.json(&["screen", &id, "--json"])["size"]["cols"] == cols
    };
    until(sized(100));
    terminal.type_in("stty size\r");
    terminal.wait_text("30 100");
    terminal.type_in(DETACH);
    assert_eq!(terminal.end(), 0);

    // The former size is restored, and a wider client changes it for as long as it is attached.
    until(sized(80));
    let wide = TermSize {
        cols: 132,
        rows: 40,
    };
    let mut wide_client = PtyUser::with_size(&cli, &["attach", &id], wide);
    until(sized(132));
    wide_client.type_in("stty size\r");
    wide_client.wait_text("40 132");
    wide_client.type_in(DETACH);
    assert_eq!(wide_client.end(), 0);
    until(sized(80));
}

/// Checks until the condition holds; each check starts a process, so it does not spin.
fn until(is_so: impl Fn() -> bool) {
    assert!((0..200).any(|_| is_so()), "it never was");
}

#[test]
fn a_daemon_that_is_killed_is_not_noticed_in_vim() {
    let cli = CliEnv::new();
    let file = cli.path().join("note.txt");
    let mut vim = PtyUser::new(&cli, &["run", "-t", "vim", "-u", "NONE", "note.txt"]);
    vim.wait_text("note.txt");
    vim.type_in("ibefore ");
    vim.wait_text("before");
    cli.kill_daemon();
    vim.type_in("after");
    vim.wait_text("before after");
    vim.type_in("\x1b:wq\r");
    assert_eq!(vim.end(), 0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "before after\n");
}

#[test]
fn one_types_and_others_watch_until_they_take_over() {
    let cli = CliEnv::new();
    let mut first = sit(&cli);
    let id = cli.find_execution("bash");
    let mut second = PtyUser::new(&cli, &["attach", &id]);
    second.wait_text("types; ctrl-\\ t takes over");
    second.type_in("echo no\r");
    second.wait_text("you only watch");
    let refused = cli.ostler(&["send", &id, "echo neither"]);
    assert_eq!(refused.code, 71, "{refused:?}");
    assert!(refused.err.contains("types in"), "{}", refused.err);

    second.type_in("\x1ct");
    first.wait_text("types now; ctrl-\\ t takes over");
    second.type_in("echo second $((1+1))\r");
    second.wait_text("second 2");
    first.wait_text("second 2");
    second.type_in("\x1ch");
    first.wait_text("nobody types now");
    first.type_in("\x1ct");
    second.wait_text("types now");
    first.type_in("echo first $((2+2))\r");
    second.wait_text("first 4");

    let mut watcher = PtyUser::new(&cli, &["attach", "--watch", &id]);
    watcher.wait_text("first 4");
    watcher.type_in("x");
    watcher.wait_text("you only watch");
    watcher.type_in("\x1c?");
    watcher.wait_text("d detach");
    watcher.type_in(DETACH);
    assert_eq!(watcher.end(), 0);
    let mut taker = PtyUser::new(&cli, &["attach", "--take-over", &id]);
    first.wait_text("types now");
    taker.type_in("exit 3\r");
    assert_eq!((taker.end(), first.end(), second.end()), (3, 3, 3));
}

#[test]
fn what_is_typed_right_after_taking_over_is_typed() {
    let cli = CliEnv::new();
    let mut first = sit(&cli);
    let id = cli.find_execution("bash");
    let mut others: Vec<PtyUser> = (0..2)
        .map(|_| PtyUser::new(&cli, &["attach", &id]))
        .collect();
    for other in &mut others {
        other.wait_text("types; ctrl-\\ t takes over");
    }
    for round in 0..12 {
        others[round % 2].type_in(&format!("\x1cttrue round{round}\r"));
        for terminal in &mut others {
            terminal.wait_text(&format!("true round{round}\n"));
        }
    }
    // Also by a client that detaches at once.
    first.type_in("\x1cttrue fare''well\r\x1cd");
    assert_eq!(first.end(), 0);
    others[0].wait_text("true fare''well\n");
}

#[test]
fn signals_leave_the_terminal_as_it_was_and_the_session_running() {
    let cli = CliEnv::new();
    for (signal, number) in [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::INT, 2)] {
        let mut terminal = sit(&cli);
        assert!(!terminal.has_original_settings());
        terminal.send(signal);
        assert_eq!(terminal.end(), 128 + number);
    }
    assert_eq!(cli.json(&["ps", "--json"]).as_array().unwrap().len(), 3);
}

#[test]
fn being_stopped_gives_the_terminal_back_for_a_while() {
    let cli = CliEnv::new();
    let mut terminal = sit(&cli);
    terminal.type_in("echo mar''ked\r");
    terminal.wait_text("marked");
    terminal.type_in("\x1cz");
    wait_process_stopped(terminal.pid());
    terminal.drain();
    assert!(terminal.has_original_settings());
    let id = cli.find_execution("bash");
    cli.stdout_of(&["send", &id, "echo mean''while"]);
    terminal.send(Signal::CONT);
    terminal.wait_text("\nmeanwhile\n");
    terminal.type_in("exit 4\r");
    assert_eq!(terminal.end(), 4);
}

#[test]
fn pipes_are_typed_in_and_printed() {
    let cli = CliEnv::new();
    let mut cat = LineChild::start(cli.command(&["run", "-t", "cat"]));
    cat.stdin.as_mut().unwrap().write_all(b"one\n").unwrap();
    assert_eq!(
        (cat.next().as_str(), cat.next().as_str()),
        ("one\r", "one\r")
    );
    assert_eq!(cat.end(), 0);

    let id = cli.stdout_of(&[
        "run",
        "-dt",
        "sh",
        "-c",
        "stty -echo; read a; echo got $a; read b",
    ]);
    let mut command = cli.command(&["attach", &id]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"it\nend\n").unwrap();
    let ran = to_output(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("got it\r\n"), "{ran:?}");
}

#[test]
fn an_ended_session_shows_its_last_screen_and_its_exit_code() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&["run", "-dt", "sh", "-c", "echo last words; exit 9"]);
    assert_eq!(cli.ostler(&["wait", &id]).code, 9);
    assert_eq!(screen(&cli, &id), "last words");
    let mut terminal = PtyUser::new(&cli, &["attach", &id]);
    assert_eq!(terminal.end(), 9);
    assert_eq!(terminal.text(), "last words");
    let json = cli.json(&["screen", &id, "--json"]);
    assert_eq!(
        json["size"],
        serde_json::json!({"cols": SIZE.cols, "rows": SIZE.rows})
    );
}

#[test]
fn keys_text_and_pastes_are_sent() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&["run", "-dt", "cat", "-A"]);
    cli.stdout_of(&["send", &id, "--no-enter", "a b"]);
    cli.stdout_of(&["send", &id, "--key", "tab", "--key", "enter"]);
    cli.stdout_of(&["send", &id, "--paste", "pasted"]);
    let mut raw = cli.command(&["send", &id, "--raw"]);
    let mut child = raw.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"r\x01w\n").unwrap();
    assert!(child.wait().unwrap().success());
    cli.stdout_of(&["send", &id, "--key", "ctrl-d"]);
    assert_eq!(cli.ostler(&["wait", &id]).code, 0);
    let text = screen(&cli, &id);
    for line in ["a b^I$", "pasted$", "r^Aw$"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
