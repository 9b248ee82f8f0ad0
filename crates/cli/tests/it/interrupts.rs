//! No wait is endless: starters that are killed at a bad moment, daemons that are killed again and
//! again, interrupts at the terminal.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::pty_user::PtyUser;
use crate::test_env::{CliEnv, LineChild, PidHandle, to_output, wait_process_stopped};

/// Lets this much time pass: not to wait for a condition, but to act at that time.
fn pass(millis: u64) {
    let time = Timespec::try_from(Duration::from_millis(millis)).unwrap();
    assert_eq!(poll(&mut [], Some(&time)), Ok(0));
}

/// The daemon that holds the lock, if there is one; no daemon is started for that. The first line
/// of the lock file is its pid; any other content fails the test, which would otherwise kill
/// nothing and pass.
fn serving(cli: &CliEnv) -> Option<PidHandle> {
    let lock = cli.path().join("run/ostler/serve.lock");
    let text = std::fs::read_to_string(lock).ok()?;
    let pid: u64 = text.lines().next()?.parse().unwrap();
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    if name.trim() != "ostler-daemon" {
        return None;
    }
    PidHandle::try_open(pid)
}

fn end_daemon(cli: &CliEnv) {
    if let Some(daemon) = serving(cli) {
        daemon.send(Signal::KILL);
        daemon.wait();
    }
}

/// Says that the work is over, also when it panics: the killing thread is waited for.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until a daemon accepts connections, or the work is over.
fn wait_served(cli: &CliEnv, over: &AtomicBool) {
    let socket = cli.path().join("run/ostler/daemon.sock");
    while !over.load(Ordering::Relaxed) && UnixStream::connect(&socket).is_err() {
        pass(1);
    }
}

/// The most daemons that are killed: on a slow machine none of them lives long enough to answer a
/// request, and the work would never end.
const MAX_KILLED: usize = 40;

/// Kills every daemon some time after its start, while `work` is done, at most [`MAX_KILLED`]. The
/// last of each round is killed only after it accepted connections, however slow the machine:
/// clients give up after 20 daemons that were killed before that.
fn under_killing<T>(cli: &CliEnv, millis: &[u64], work: impl FnOnce() -> T) -> (T, usize) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let killing = scope.spawn(|| {
            let mut killed = 0;
            for (n, wait) in millis.iter().enumerate().cycle() {
                if over.load(Ordering::Relaxed) || killed == MAX_KILLED {
                    return killed;
                }
                if n + 1 == millis.len() {
                    wait_served(cli, &over);
                }
                pass(*wait);
                if let Some(daemon) = serving(cli) {
                    daemon.send(Signal::KILL);
                    daemon.wait();
                    killed += 1;
                }
            }
            killed
        });
        let end = EndOnDrop(&over);
        let result = work();
        drop(end);
        (result, killing.join().unwrap())
    })
}

#[test]
fn the_starter_of_a_daemon_may_be_killed_at_any_moment() {
    let cli = CliEnv::new();
    let signals = [Signal::INT, Signal::TERM, Signal::KILL, Signal::HUP];
    for millis in (0..=100_u64).step_by(2) {
        end_daemon(&cli);
        let verb: &[&str] = [&["ps"][..], &["run", "true"]][usize::from(millis % 4 == 0)];
        let mut first = cli.command(verb);
        first
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut first = first.spawn().unwrap();
        pass(millis);
        let signal = signals[usize::try_from(millis / 2).unwrap() % signals.len()];
        let group = Pid::from_raw(i32::try_from(first.id()).unwrap()).unwrap();
        // Alone as by a supervisor, or with its process group as by a terminal.
        if millis % 3 == 0 {
            let _gone = kill_process_group(group, signal);
        } else {
            PidHandle::open(first.id().into()).send(signal);
        }
        let begin = Instant::now();
        let second = cli.ostler(&["ps", "-q"]);
        let took = begin.elapsed();
        assert_eq!(second.code, 0, "{signal:?} after {millis} ms: {second:?}");
        assert!(
            took < Duration::from_secs(20),
            "{signal:?} after {millis} ms: {took:?}"
        );
        first.wait().unwrap();
    }
}

#[test]
fn a_stopped_starter_blocks_no_other_caller() {
    let cli = CliEnv::new();
    for millis in [0, 5, 10, 20, 40, 80] {
        end_daemon(&cli);
        let mut first = cli.command(&["ps", "-q"]);
        let mut first = first.stdout(Stdio::null()).spawn().unwrap();
        pass(millis);
        let process = PidHandle::open(first.id().into());
        process.send(Signal::STOP);
        let second = cli.ostler(&["ps", "-q"]);
        assert_eq!(second.code, 0, "after {millis} ms: {second:?}");
        process.send(Signal::CONT);
        assert!(first.wait().unwrap().success());
    }
}

#[test]
fn a_daemon_that_is_about_to_end_is_waited_for() {
    let cli = CliEnv::new();
    std::fs::create_dir_all(cli.path().join("run/ostler")).unwrap();
    // A process that holds the daemons' lock and never serves.
    let lock = cli.path().join("run/ostler/serve.lock");
    let mut holder = Command::new("flock");
    let script = format!("echo $$ > {0}; exec sleep 1", lock.display());
    let mut holder = holder
        .arg(&lock)
        .args(["sh", "-c", &script])
        .spawn()
        .unwrap();
    let waits = Instant::now();
    while std::fs::read_to_string(&lock)
        .unwrap_or_default()
        .is_empty()
    {
        assert!(waits.elapsed() < Duration::from_secs(20));
        pass(1);
    }
    // It exits, and the waiting client continues at once.
    let second = cli.ostler(&["ps", "-q"]);
    assert_eq!(second.code, 0, "{second:?}");
    assert!(waits.elapsed() < Duration::from_secs(20));
    holder.wait().unwrap();
}

#[test]
fn a_start_is_carried_out_once_however_many_daemons_die() {
    let cli = CliEnv::new();
    let marks = cli.path().join("marks");
    let script = format!("echo $0 >> {}", marks.display());
    let work = || -> Vec<String> {
        let start = |n: usize| {
            let ran = cli.ostler(&["run", "-d", "sh", "-c", &script, &n.to_string()]);
            assert_eq!(ran.code, 0, "{ran:?}");
            assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
            ran.out.trim().to_owned()
        };
        (0..25).map(start).collect()
    };
    let (ids, killed) = under_killing(&cli, &[15, 60, 30, 45, 80, 110], work);
    assert!(killed > 3, "{killed} daemons were killed");
    for id in &ids {
        let waited = cli.ostler(&["wait", id]);
        assert!([0, 125].contains(&waited.code), "{id}: {waited:?}");
    }
    let all = cli.stdout_of(&["ps", "-aq"]);
    assert_eq!(all.lines().count(), ids.len(), "{killed} killed: {all}");
    let mut marks: Vec<String> = std::fs::read_to_string(marks)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let count = marks.len();
    marks.sort();
    marks.dedup();
    assert_eq!((marks.len(), count), (ids.len(), ids.len()));
}

#[test]
fn daemons_that_are_all_killed_as_they_start_are_named_as_the_cause() {
    let cli = CliEnv::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                match serving(&cli) {
                    Some(daemon) => {
                        daemon.send(Signal::KILL);
                        daemon.wait();
                    }
                    None => pass(1),
                }
            }
        });
        let _end = EndOnDrop(&over);
        // A daemon that serves before it is killed is one more attempt.
        let begin = Instant::now();
        let failed = loop {
            let ran = cli.ostler(&["ps", "-q"]);
            if ran.code != 0 {
                break ran;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "none fails");
        };
        let cause = "daemons in a row were killed by a signal while they started";
        assert!(
            failed.code == 69 && failed.err.contains(cause),
            "{failed:?}"
        );
    });
}

#[test]
fn a_run_goes_on_however_many_daemons_die() {
    let cli = CliEnv::new();
    let script = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo line $i; sleep 0.03; done; exit 7";
    let work = || {
        let followed = cli.command(&["run", "sh", "-c", script]).output().unwrap();
        to_output(followed)
    };
    let (run, killed) = under_killing(&cli, &[50, 200, 120, 400], work);
    let expected: String = (1..=150).map(|n| format!("line {n}\n")).collect();
    assert_eq!(
        (run.code, run.out),
        (7, expected),
        "{killed} killed: {}",
        run.err
    );
    assert!(killed > 3, "{killed} daemons were killed");
}

const STUBBORN: &str = "trap '' INT TERM; echo ready; while :; do sleep 1; done";

/// Interrupts until each of these words is in the file, one after the other. Interrupts that come
/// before the process has handled the last one are one signal to the kernel (signal(7)).
fn interrupt_until(run: &mut LineChild, errors: &std::path::Path, words: &[&str]) {
    let begin = Instant::now();
    for word in words {
        while !std::fs::read_to_string(errors).unwrap().contains(word) {
            assert!(begin.elapsed() < Duration::from_secs(20), "not {word}");
            run.send(Signal::INT);
            pass(100);
        }
    }
}

#[test]
fn the_third_interrupt_kills_what_is_stubborn() {
    let cli = CliEnv::new();
    let mut command = cli.command(&["run", "sh", "-c", STUBBORN]);
    command.stderr(std::fs::File::create(cli.path().join("err")).unwrap());
    let mut run = LineChild::start(command);
    assert_eq!(run.next(), "ready");
    interrupt_until(&mut run, &cli.path().join("err"), &["stopping", "killing"]);
    let begin = Instant::now();
    assert_eq!(run.end(), 137);
    assert!(begin.elapsed() < Duration::from_secs(8));
    let stderr = std::fs::read_to_string(cli.path().join("err")).unwrap();
    assert!(
        stderr.contains("stopping") && stderr.contains("killing"),
        "{stderr}"
    );
    assert_eq!(cli.stdout_of(&["ps", "-q"]), "");
}

#[test]
fn the_second_interrupt_asks_it_to_end() {
    let cli = CliEnv::new();
    let script = "trap '' INT; trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done";
    let mut command = cli.command(&["run", "sh", "-c", script]);
    command.stderr(std::fs::File::create(cli.path().join("err")).unwrap());
    let mut run = LineChild::start(command);
    assert_eq!(run.next(), "ready");
    interrupt_until(&mut run, &cli.path().join("err"), &["stopping"]);
    let code = run.end();
    assert!([9, 143].contains(&code), "{code}");
}

#[test]
fn the_third_interrupt_returns_also_when_no_daemon_answers() {
    let cli = CliEnv::new();
    let mut command = cli.command(&["run", "sh", "-c", STUBBORN]);
    command.stderr(std::fs::File::create(cli.path().join("err")).unwrap());
    let mut run = LineChild::start(command);
    assert_eq!(run.next(), "ready");
    let daemon = serving(&cli).unwrap();
    daemon.send(Signal::STOP);
    wait_process_stopped(daemon.pid);
    interrupt_until(&mut run, &cli.path().join("err"), &["stopping", "killing"]);
    assert_eq!(run.end(), 130);
    daemon.send(Signal::CONT);
    let stderr = std::fs::read_to_string(cli.path().join("err")).unwrap();
    let id = cli.find_execution("ready");
    assert!(
        stderr.contains("may still run") && stderr.contains(&id),
        "{stderr}"
    );
}

#[test]
fn an_interrupt_while_the_command_is_started_ends_the_client_of_a_hung_daemon() {
    let cli = CliEnv::new();
    cli.stdout_of(&["ps", "-q"]);
    let daemon = serving(&cli).unwrap();
    daemon.send(Signal::STOP);
    wait_process_stopped(daemon.pid);
    let mut command = cli.command(&["run", "sh", "-c", "echo ready; sleep 300"]);
    command.stderr(std::fs::File::create(cli.path().join("err")).unwrap());
    let mut run = LineChild::start(command);
    pass(500);
    run.send(Signal::INT);
    assert_eq!(run.end(), 130);
    let stderr = std::fs::read_to_string(cli.path().join("err")).unwrap();
    assert!(stderr.contains("may still run"), "{stderr}");
    daemon.send(Signal::CONT);
    // No client waits for it: it is cancelled, or was never started.
    let begin = Instant::now();
    while !cli.stdout_of(&["ps", "-q"]).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it runs on");
    }
}

#[test]
fn what_was_shown_is_not_shown_again_by_the_next_daemon() {
    let cli = CliEnv::new();
    let script = "echo first; read x; echo second; read x; echo third; exit 4";
    let mut pty = PtyUser::new(&cli, &["run", "-t", "sh", "-c", script]);
    pty.wait_text("first");
    for (daemon, next) in ["second", "third"].into_iter().enumerate() {
        end_daemon(&cli);
        pty.type_in("\r");
        pty.wait_text(next);
        assert!(daemon < 2);
    }
    assert_eq!(pty.end(), 4);
    let shown = String::from_utf8_lossy(&pty.output).into_owned();
    for word in ["first", "second", "third"] {
        assert_eq!(shown.matches(word).count(), 1, "{word}: {shown:?}");
    }
}

#[test]
fn a_program_that_stops_itself_in_a_terminal_goes_on() {
    let cli = CliEnv::new();
    let script = "echo ready; read x; kill -STOP 0; echo went on; read x; exit 3";
    let mut pty = PtyUser::new(&cli, &["run", "-t", "sh", "-c", script]);
    pty.wait_text("ready");
    pty.type_in("\r");
    pty.wait_text("went on");
    pty.type_in("\r");
    assert_eq!(pty.end(), 3);

    // Sessions that were started detached stay.
    let id = cli.stdout_of(&["run", "-dt", "cat"]);
    let pid = cli.json(&["info", "--json", &id])["os_pid"]
        .as_u64()
        .unwrap();
    cli.stdout_of(&["kill", "--signal", "STOP", &id]);
    wait_process_stopped(pid);
    pass(200);
    wait_process_stopped(pid);
    cli.stdout_of(&["kill", "--signal", "CONT", &id]);

    let file = cli.path().join("note.txt");
    let mut vim = PtyUser::new(&cli, &["run", "-t", "vim", "-u", "NONE", "note.txt"]);
    vim.wait_text("note.txt");
    vim.type_in("\x1a");
    vim.type_in("ihello\x1b:wq\r");
    assert_eq!(vim.end(), 0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "hello\n");
}

fn piped(cli: &CliEnv, args: &[&str], input: &[u8]) -> crate::test_env::CommandOutput {
    let mut command = cli.command(args);
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    to_output(child.wait_with_output().unwrap())
}

fn logged(cli: &CliEnv, id: &str) -> String {
    cli.stdout_of(&["logs", "--no-time", id])
}

#[test]
fn the_end_of_piped_input_types_nothing() {
    let cli = CliEnv::new();
    let id = cli.stdout_of(&[
        "run",
        "-dt",
        "sh",
        "-c",
        "stty -icanon -echo; echo ready; exec od -An -c -v -w1",
    ]);
    let begin = Instant::now();
    while !logged(&cli, &id).contains("ready") {
        assert!(begin.elapsed() < Duration::from_secs(20), "not ready");
    }
    let left = piped(&cli, &["attach", &id], b"one");
    assert_eq!(left.code, 0, "{left:?}");
    let _again = piped(&cli, &["attach", &id], b"");
    let _last = piped(&cli, &["attach", &id], b"2");
    assert_eq!(cli.stdout_of(&["ps", "-q"]), id);
    cli.stdout_of(&["send", &id, "--no-enter", "end"]);
    let begin = Instant::now();
    loop {
        let shown: String = logged(&cli, &id).split_whitespace().collect();
        if shown == "readyone2end" {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{shown:?}");
    }
}

#[test]
fn every_verb_goes_on_however_many_daemons_die() {
    let cli = CliEnv::new();
    let script = "i=0; while [ $i -lt 120 ]; do i=$((i+1)); echo line $i; sleep 0.03; done; exit 5";
    let id = cli.background(script);
    let terminal = cli.stdout_of(&["run", "-dt", "sh", "-c", script]);
    let begin = |args: &[&str]| {
        let mut command = cli.command(args);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().unwrap()
    };
    let work = || {
        let children = [
            begin(&["logs", "-f", "--no-time", &id]),
            begin(&["wait", &id]),
            begin(&["attach", "--watch", &terminal]),
        ];
        let shells = [(); 3].map(|()| cli.stdout_of(&["shell", "bash", "--detach"]));
        let words = [
            "service",
            "start",
            "--no-wait",
            "--name",
            "sleeper",
            "sleep 300",
        ];
        let service = cli.ostler(&words);
        let ended = children.map(|child| to_output(child.wait_with_output().unwrap()));
        (ended, shells, service)
    };
    let ((ended, shells, service), killed) = under_killing(&cli, &[40, 150, 90, 250], work);
    let [logs, wait, attach] = ended;
    assert!(killed > 3, "{killed} daemons were killed");
    let expected: String = (1..=120).map(|n| format!("line {n}\n")).collect();
    assert_eq!((logs.code, logs.out), (0, expected), "{}", logs.err);
    assert_eq!(wait.code, 5, "{wait:?}");
    assert_eq!(attach.code, 5, "{attach:?}");
    assert_eq!(attach.out.matches("line 120\r\n").count(), 1, "{attach:?}");
    assert_eq!(service.code, 0, "{service:?}");
    let running = cli.stdout_of(&["ps", "-q"]);
    assert_eq!(running.lines().count(), shells.len() + 1, "{running}");
    for shell in &shells {
        assert!(running.contains(shell.as_str()), "{shell}: {running}");
    }
}

#[test]
fn services_are_brought_up_once_however_many_daemons_die() {
    let cli = CliEnv::new();
    let manifest = "[services.one]\ncommand = \"sleep 300\"\n\
                    [services.two]\ncommand = \"sleep 301\"\ndepends_on = [\"one\"]\n";
    std::fs::write(cli.path().join("ostler.toml"), manifest).unwrap();
    cli.stdout_of(&["ps"]);
    let up = || cli.ostler(&["service", "up"]);
    // Longer than a start takes, shorter than that of both.
    let (up, killed) = under_killing(&cli, &[1_500, 2_500], up);
    assert!(killed > 0, "no daemon was killed");
    assert_eq!(up.code, 0, "{up:?}");
    let running = cli.stdout_of(&["ps", "-q"]);
    assert_eq!(running.lines().count(), 2, "{running}");
}
