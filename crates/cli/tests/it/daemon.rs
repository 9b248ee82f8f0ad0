use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::test_env::{CliEnv, LineChild, to_output};

#[test]
fn ten_commands_at_once_start_one_daemon() {
    let cli = CliEnv::new();
    let start = |n: usize| {
        let mut command = cli.command(&["run", "echo", &n.to_string()]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..10).map(start).collect();
    for (n, child) in children.into_iter().enumerate() {
        let ran = to_output(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.out), (0, format!("{n}\n")), "{}", ran.err);
    }
    let log = std::fs::read_to_string(cli.state().join("daemon.log")).unwrap();
    assert!(!log.contains("in use"), "{log}");
    assert_eq!(cli.stdout_of(&["ps", "-aq"]).lines().count(), 10);
}

#[test]
fn what_runs_survives_the_kill_of_its_daemon() {
    let cli = CliEnv::new();
    let go = cli.path().join("go");
    let script = format!(
        "mkfifo {0}; echo before; read x < {0}; echo after; exit 5",
        go.display()
    );
    let id = cli.background(&script);
    let mut follower = LineChild::start(cli.command(&["logs", "-f", "--no-time", &id]));
    assert_eq!(follower.next(), "before");
    let waiter = LineChild::start(cli.command(&["wait", &id]));

    let first = cli.daemon().unwrap().pid;
    cli.kill_daemon();
    assert_eq!(cli.stdout_of(&["ps", "-q"]), id);
    assert_ne!(cli.daemon().unwrap().pid, first);
    assert_eq!(cli.stdout_of(&["logs", "--no-time", &id]), "before");
    std::fs::write(&go, "x\n").unwrap();
    assert_eq!(follower.next(), "after");
    assert_eq!((follower.end(), waiter.end()), (0, 5));
    assert_eq!(cli.json(&["info", "--json", &id])["exit_code"], 5);
}

#[test]
fn what_ends_while_no_daemon_lives_has_its_true_exit_status() {
    let cli = CliEnv::new();
    let go = cli.path().join("go");
    let done = cli.path().join("done");
    let script = format!(
        "mkfifo {go} {done}; echo ready; read x < {go}; echo out; echo > {done}; exit 6",
        go = go.display(),
        done = done.display()
    );
    let id = cli.background(&script);
    LineChild::start(cli.command(&["logs", "-f", &id])).until("ready");
    cli.kill_daemon();
    std::fs::write(&go, "x\n").unwrap();
    std::fs::read(&done).unwrap();
    assert_eq!(cli.ostler(&["wait", &id]).code, 6);
    assert_eq!(cli.stdout_of(&["logs", "--no-time", "-n", "1", &id]), "out");
}

#[test]
fn a_run_goes_on_over_the_death_of_its_daemon() {
    let cli = CliEnv::new();
    let go = cli.path().join("go");
    let script = format!(
        "mkfifo {0}; echo before; read x < {0}; echo after; exit 5",
        go.display()
    );
    let mut run = LineChild::start(cli.command(&["run", "sh", "-c", &script]));
    assert_eq!(run.next(), "before");
    cli.kill_daemon();
    std::fs::write(&go, "x\n").unwrap();
    assert_eq!(run.next(), "after");
    assert_eq!(run.end(), 5);
}

#[test]
fn an_orderly_shutdown_leaves_what_runs() {
    let cli = CliEnv::new();
    let id = cli.background("exec sleep 300");
    cli.stdout_of(&["shutdown"]);
    assert!(cli.daemon().is_none());
    assert_eq!(cli.ostler(&["shutdown"]).code, 69);
    assert_eq!(cli.stdout_of(&["ps", "-q"]), id);
    // While a daemon ends, either it or the next one responds; in the first case there may be none
    // afterwards.
    for _ in 0..5 {
        if let Some(daemon) = cli.daemon() {
            daemon.send(Signal::TERM);
        }
        assert_eq!(cli.stdout_of(&["ps", "-q"]), id);
    }
}

#[test]
fn a_second_daemon_is_refused_and_says_who_serves() {
    let cli = CliEnv::new();
    let mut first = LineChild::start(cli.command(&["serve"]));
    let greeting = first.next();
    assert!(greeting.ends_with("serves"), "{greeting}");
    let config = first.until("mcpServers");
    assert!(config.contains("mcpServers"));
    let daemon = cli.daemon().unwrap();
    assert_eq!(daemon.pid, u64::from(first.child.id()));
    let second = cli.ostler(&["serve"]);
    assert_eq!(second.code, 69);
    let message = format!("process {} already serves", daemon.pid);
    assert!(second.err.contains(&message), "{}", second.err);
    // It is named what that daemon serves, not what the second one would.
    let runtime = cli.path().join("run/ostler");
    let runtime = runtime.to_str().unwrap();
    let other = cli.ostler(&["serve", "--state-dir", "other", "--runtime-dir", runtime]);
    assert_eq!(other.code, 69);
    assert!(other.err.contains(&message), "{}", other.err);
    let first_line = other.err.lines().next().unwrap();
    assert!(!first_line.ends_with("other"), "{first_line}");
    first.send(Signal::INT);
    assert_eq!(first.end(), 0);
    assert!(!cli.path().join("run/ostler/daemon.sock").exists());
}

#[test]
fn sockets_below_a_long_path_work() {
    let cli = CliEnv::with_runtime(&format!("{}/{}", "l".repeat(100), "o".repeat(100)));
    assert_eq!(cli.stdout_of(&["run", "echo", "far"]), "far");
}

#[test]
fn state_directories_have_daemons_of_their_own() {
    let cli = CliEnv::new();
    cli.stdout_of(&["run", "true"]);
    let other = ["--state-dir", "other"];
    let run = |args: &[&str]| cli.stdout_of(&[&other, args].concat());
    assert_eq!(run(&["ps", "-aq"]), "");
    run(&["shutdown"]);
    assert_eq!(cli.stdout_of(&["ps", "-aq"]).lines().count(), 1);
}

#[test]
fn a_daemon_with_nothing_to_do_ends() {
    let cli = CliEnv::new();
    std::fs::create_dir_all(cli.path().join("config/ostler")).unwrap();
    let file = cli.path().join("config/ostler/config.toml");
    std::fs::write(file, "[daemon]\nidle_exit_seconds = 1\n").unwrap();
    cli.stdout_of(&["run", "true"]);
    cli.daemon().unwrap().wait();
    assert!(cli.daemon().is_none());
    // With a running command, it stays: the command outlives the idle time by far.
    let id = cli.background("exec sleep 2.5");
    let daemon = cli.daemon().unwrap().pid;
    cli.stdout_of(&["wait", &id]);
    assert_eq!(cli.daemon().map(|daemon| daemon.pid), Some(daemon));
}

#[test]
fn the_daemon_is_named_and_holds_nothing_of_its_starter() {
    let cli = CliEnv::new();
    let (reader, writer) = UnixStream::pair().unwrap();
    let mut command = cli.command(&["run", "true"]);
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(writer)));
    assert!(command.status().unwrap().success());
    drop(command);
    // Its starter exited, so only a daemon that inherited the descriptor would keep this open.
    crate::test_env::wait_readable(&reader);
    let pid = cli.daemon().unwrap().pid;
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(comm, "ostler-daemon\n");
}
