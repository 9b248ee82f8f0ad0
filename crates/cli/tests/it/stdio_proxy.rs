use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::test_env::{CliEnv, McpStdioClient, PidHandle, to_output};

fn mcp(cli: &CliEnv) -> McpStdioClient {
    McpStdioClient::start(cli.command(&["mcp", "--tools", "core,command"]))
}

#[test]
fn one_family_of_tools_is_listed_unless_more_are_requested() {
    let cli = CliEnv::new();
    let mut client = McpStdioClient::start(cli.command(&["mcp"]));
    let tools = client.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
    let core = ["exec", "process", "process_control", "workspace", "service"];
    assert_eq!(names, core);
    drop(client);
    cli.stdout_of(&["shutdown"]);
}

#[test]
fn a_client_runs_commands_and_its_session_ends_with_it() {
    let cli = CliEnv::new();
    let mut client = mcp(&cli);
    let tools = client.request("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 12);
    let here = cli.path().to_str().unwrap();
    let said = client.call_ok(
        "command_execute",
        json!({"command": "pwd", "args": [], "directory": here}),
    );
    assert!(said.contains(here), "{said}");
    client.call_ok(
        "command_bg_start",
        json!({"command": "sleep", "args": ["300"], "directory": here, "description": "d"}),
    );
    let id = cli.find_execution("sleep 300");
    let pid = cli.json(&["info", "--json", &id])["os_pid"]
        .as_u64()
        .unwrap();
    let sleep = PidHandle::open(pid);
    assert_eq!(client.lines.end(), 0);
    sleep.wait();
    assert_eq!(cli.stdout_of(&["ps", "-q"]), "");
}

#[test]
fn a_killed_proxy_ends_its_session() {
    let cli = CliEnv::new();
    let mut client = mcp(&cli);
    let here = cli.path().to_str().unwrap();
    client.call_ok(
        "command_bg_start",
        json!({"command": "sleep", "args": ["300"], "directory": here, "description": "d"}),
    );
    let id = cli.find_execution("sleep 300");
    let pid = cli.json(&["info", "--json", &id])["os_pid"]
        .as_u64()
        .unwrap();
    let sleep = PidHandle::open(pid);
    client.lines.send(rustix::process::Signal::KILL);
    sleep.wait();
    assert_eq!(client.lines.end(), -9);
}

#[test]
fn a_named_session_is_kept_and_shared() {
    let cli = CliEnv::new();
    let here = cli.path().to_str().unwrap().to_owned();
    let named = || {
        McpStdioClient::start(cli.command(&["mcp", "--tools", "core,command", "--session", "work"]))
    };
    let mut client = named();
    client.call_ok(
        "command_bg_start",
        json!({"command": "sleep", "args": ["300"], "directory": here, "description": "d"}),
    );
    assert_eq!(client.lines.end(), 0);
    let mut again = named();
    let listed = again.call_ok("command_ps_list", json!({}));
    assert!(listed.contains("sleep"), "{listed}");
    let mut stranger = mcp(&cli);
    let listed = stranger.call_ok("command_ps_list", json!({}));
    assert!(!listed.contains("sleep"), "{listed}");
    assert_eq!((again.lines.end(), stranger.lines.end()), (0, 0));
}

#[test]
fn a_conversation_goes_on_over_the_death_of_its_daemon() {
    let cli = CliEnv::new();
    let mut client = mcp(&cli);
    let here = cli.path().to_str().unwrap();
    client.call_ok(
        "command_bg_start",
        json!({"command": "sh", "args": ["-c", "echo started; sleep 300"], "directory": here, "description": "d"}),
    );
    for _ in 0..3 {
        cli.kill_daemon();
        let listed = client.call_ok("command_ps_list", json!({}));
        assert!(listed.contains("sleep 300"), "{listed}");
        let said = client.call_ok(
            "command_execute",
            json!({"command": "echo", "args": ["on"], "directory": here}),
        );
        assert!(said.contains("on"), "{said}");
    }
    let id = cli.find_execution("sleep 300");
    let logs = client.call_ok("command_ps_logs", json!({"pid": id}));
    assert!(logs.contains("started"), "{logs}");
    assert_eq!(client.lines.end(), 0);
    assert_eq!(cli.stdout_of(&["ps", "-q"]), "");
}

#[test]
fn a_shutdown_lets_the_client_go_on_when_it_speaks_again() {
    let cli = CliEnv::new();
    let mut client = mcp(&cli);
    cli.stdout_of(&["shutdown"]);
    assert!(cli.daemon().is_none());
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 12);
    assert!(cli.daemon().is_some());
    assert_eq!(client.lines.end(), 0);
}

#[test]
fn a_session_ends_when_its_proxy_went_while_no_daemon_lived() {
    let cli = CliEnv::new();
    let mut client = mcp(&cli);
    let here = cli.path().to_str().unwrap();
    client.call_ok(
        "command_bg_start",
        json!({"command": "sleep", "args": ["300"], "directory": here, "description": "d"}),
    );
    let id = cli.find_execution("sleep 300");
    let pid = cli.json(&["info", "--json", &id])["os_pid"]
        .as_u64()
        .unwrap();
    let sleep = PidHandle::open(pid);
    cli.stdout_of(&["shutdown"]);
    client.lines.send(rustix::process::Signal::KILL);
    assert_eq!(client.lines.end(), -9);
    cli.ostler(&["ps"]);
    sleep.wait();
}

#[test]
fn streams_that_cannot_be_handed_over_are_relayed() {
    let cli = CliEnv::new();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let file = cli.path().join("requests");
    std::fs::write(&file, format!("{request}\n{initialized}\n{list}\n")).unwrap();
    for mode in [
        &["mcp", "--tools", "core,command"][..],
        &["mcp", "--tools", "core,command", "--no-daemon"],
    ] {
        let mut command = cli.command(mode);
        command.stdin(std::fs::File::open(&file).unwrap());
        let ran = to_output(command.stdout(Stdio::piped()).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.out.lines().count(), 2, "{ran:?}");
        assert!(ran.out.contains("command_execute"));
    }
}

#[test]
fn socket_pairs_work_as_standard_streams() {
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let cli = CliEnv::new();
    let (mut to, stdin) = UnixStream::pair().unwrap();
    let (from, stdout) = UnixStream::pair().unwrap();
    let mut command = cli.command(&["mcp", "--tools", "core,command"]);
    command
        .stdin(OwnedFd::from(stdin))
        .stdout(OwnedFd::from(stdout));
    let mut child = command.spawn().unwrap();
    drop(command);
    to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n").unwrap();
    crate::test_env::wait_readable(&from);
    let mut line = String::new();
    BufReader::new(&from).read_line(&mut line).unwrap();
    assert!(line.contains("serverInfo"), "{line}");
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_environment_of_a_proxy_tightens_what_it_may_run() {
    let cli = CliEnv::new();
    let mut free = mcp(&cli);
    let mut command = cli.command(&["mcp", "--tools", "core,command"]);
    command
        .env("ALLOWED_COMMANDS", "echo")
        .env("DEFAULT_ENCODING", "gbk");
    let mut bound = McpStdioClient::start(command);
    let here = cli.path().to_str().unwrap();
    let pwd = json!({"command": "pwd", "args": [], "directory": here});
    let (refused, error) = bound.call("command_execute", pwd.clone());
    assert!(
        error && refused.contains("not an allowed command"),
        "{refused}"
    );
    free.call_ok("command_execute", pwd);
    let echo = json!({"command": "echo", "args": ["-e", r"\0304\0343"], "directory": here});
    let said = bound.call_ok("command_execute", echo);
    assert!(said.contains('你'), "{said}");
    let mut run = cli.command(&["run", "pwd"]);
    let refused = to_output(run.env("ALLOWED_COMMANDS", "echo").output().unwrap());
    assert_eq!(refused.code, 77, "{refused:?}");
    assert_eq!((free.lines.end(), bound.lines.end()), (0, 0));
}

#[test]
fn an_engine_in_the_proxy_serves_alone() {
    let cli = CliEnv::new();
    let mut client =
        McpStdioClient::start(cli.command(&["mcp", "--tools", "core,command", "--no-daemon"]));
    let here = cli.path().to_str().unwrap();
    client.call_ok(
        "command_bg_start",
        json!({"command": "sleep", "args": ["300"], "directory": here, "description": "d"}),
    );
    assert!(cli.daemon().is_none());
    assert_eq!(client.lines.end(), 0);
    assert_eq!(cli.stdout_of(&["ps", "-aq"]), "");
}

#[test]
fn an_engine_in_the_proxy_ends_its_session_on_request() {
    for beside_a_daemon in [false, true] {
        let cli = CliEnv::new();
        if beside_a_daemon {
            cli.stdout_of(&["ps"]);
        }
        let mut client =
            McpStdioClient::start(cli.command(&["mcp", "--tools", "core,command", "--no-daemon"]));
        let pid_file = cli.path().join("pid");
        let made = std::process::Command::new("mkfifo").arg(&pid_file).status();
        assert!(made.unwrap().success());
        let script = format!("echo $$ > {}; exec sleep 300", pid_file.display());
        let here = cli.path().to_str().unwrap();
        client.call_ok(
            "command_bg_start",
            json!({"command": "sh", "args": ["-c", script], "directory": here, "description": "d"}),
        );
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        let sleep = PidHandle::open(pid.trim().parse().unwrap());
        client.lines.send(rustix::process::Signal::TERM);
        sleep.wait();
        assert_eq!(client.lines.end(), 0);
    }
}

#[test]
fn half_a_line_does_not_confuse_the_next_daemon() {
    let cli = CliEnv::new();
    let mut client = mcp(&cli);
    let half = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\",\"x\":\"{}",
        "y".repeat(5_000)
    );
    let stdin = client.lines.stdin.as_mut().unwrap();
    stdin.write_all(half.as_bytes()).unwrap();
    // A notification has no response, so another request shows that the daemon has read it.
    cli.stdout_of(&["ps"]);
    cli.kill_daemon();
    client
        .lines
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"y\"}\n")
        .unwrap();
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 12);
    assert_eq!(client.lines.end(), 0);
}

#[test]
fn bad_sessions_and_tools_are_refused() {
    let cli = CliEnv::new();
    for bad in [
        &["mcp", "--session", "front-1-2"][..],
        &["mcp", "--session", ""],
        &["mcp", "--session", "a b"],
        &["mcp", "--tools", "all"],
    ] {
        let ran = cli.ostler(bad);
        assert_eq!(ran.code, 64, "{bad:?}: {ran:?}");
    }
    assert!(cli.daemon().is_none());
}
