//! Services through MCP: the tool `service`, recognised commands, notifications.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use common::{McpTestClient, ServerFixture, normalize_text, text};
use ostler_engine::{AutoServices, ListFilter, StopRequest};
use ostler_server::mcp::{ToolGroup, ToolSet};
use serde_json::{Value, json};

/// The port for answers that contain none.
const NO_PORT: u16 = 65_432;
const MESSAGE: &str = "notifications/message";

async fn client(bench: &ServerFixture) -> McpTestClient {
    bench
        .client_with("s", "core,command".parse().unwrap())
        .await
}

/// A port without a listener.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A small server on this port.
fn server(port: u16) -> Value {
    let port = port.to_string();
    json!([
        "python3",
        "-u",
        "-m",
        "http.server",
        "--bind",
        "127.0.0.1",
        port
    ])
}

/// A program that prints a line and then nothing.
fn quiet(line: &str) -> Value {
    json!(["sh", "-c", format!("echo {line}; exec sleep 300")])
}

async fn service(client: &mut McpTestClient, action: &str, more: Value) -> Value {
    let mut arguments = more;
    arguments["action"] = action.into();
    client.call("service", arguments).await
}

fn body(result: &Value) -> &Value {
    assert_eq!(result["isError"], false, "{result}");
    &result["structuredContent"]
}

/// The text with varying values replaced.
fn plain(text: &str, port: u16) -> String {
    let mut text = normalize_text(text).replace(&port.to_string(), "PORT");
    for (rule, by) in [
        (r"ID: [0-9a-z]{8}", "ID: [id]"),
        (r"ID [0-9a-z]{8}", "ID [id]"),
        (r"pid \d+", "pid [pid]"),
        (r"\d+(\.\d+)? ?m?s\b", "[time]"),
        (r"python3\.\d+", "python3"),
    ] {
        let rule = regex::Regex::new(rule).unwrap();
        text = rule.replace_all(&text, by).into_owned();
    }
    text
}

/// The first line of an answer to a request for this path.
fn first_line(port: u16) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(b"HEAD / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// Services stay when their session ends: each is stopped.
async fn end(bench: &ServerFixture) {
    let everybody = bench.caller(None);
    for info in bench.engine.list(&everybody, &ListFilter::default()) {
        let force = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        let id = info.id.to_string();
        bench.engine.stop(&everybody, &id, force).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_is_started_found_and_stopped_by_its_name() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let more = json!({"name": "web", "command": server(port)});
    let started = service(&mut client, "start", more.clone()).await;
    insta::assert_snapshot!(plain(&text(&started), port));
    let told = body(&started);
    assert_eq!(told["event"], "service_ready");
    assert_eq!(
        (&told["name"], &told["status"]),
        (&json!("web"), &json!("ready"))
    );
    assert_eq!(told["ports"][0]["port"], port);
    assert_eq!(told["message"], text(&started));
    assert!(told["pid"].is_number() && !told["evidence"].as_array().unwrap().is_empty());
    assert!(first_line(port).contains("200"));

    let ensured = service(&mut client, "ensure", more.clone()).await;
    assert_eq!(body(&ensured)["reused"], true);
    assert_eq!(body(&ensured)["id"], told["id"]);
    let again = service(&mut client, "start", more).await;
    assert_eq!(again["isError"], true);
    assert!(
        text(&again).starts_with("Failed to start service: service 'web' runs already"),
        "{again}"
    );

    let listed = service(&mut client, "list", json!({})).await;
    let listed = body(&listed);
    assert_eq!(
        (&listed["total"], &listed["living"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(listed["services"][0]["id"], told["id"]);
    let status = service(
        &mut client,
        "status",
        json!({"name": "web", "wait_ms": 1000}),
    )
    .await;
    assert_eq!(body(&status)["event"], "service_ready");
    let logs = service(&mut client, "logs", json!({"name": "web", "grep": "HEAD"})).await;
    assert!(text(&logs).contains("HEAD / HTTP/1.0"), "{logs}");
    let why = service(&mut client, "why", json!({"name": "web"})).await;
    assert_eq!(body(&why)["status"], "ready");
    let listed = client.call("process", json!({"action": "list"})).await;
    let entry = &listed["structuredContent"]["processes"][0];
    assert_eq!(entry["service"]["name"], "web", "{listed}");

    let restarted = service(&mut client, "restart", json!({"name": "web"})).await;
    assert_eq!(body(&restarted)["event"], "service_ready", "{restarted}");
    let stopped = service(&mut client, "stop", json!({"name": "web"})).await;
    assert_eq!(body(&stopped)["released"], json!([port]), "{stopped}");
    assert_eq!(body(&stopped)["status"], "stopped");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    end(&bench).await;
}

#[tokio::test]
async fn what_fails_says_how_at_once() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let missing = service(
        &mut client,
        "start",
        json!({"command": ["no-such-program-x"]}),
    )
    .await;
    assert_eq!(missing["isError"], true);
    assert!(
        text(&missing).starts_with("Failed to start service: "),
        "{missing}"
    );

    let broken =
        json!({"name": "broken", "command": "echo loading; echo 'no such module' >&2; exit 3"});
    let failed = service(&mut client, "start", broken).await;
    insta::assert_snapshot!(plain(&text(&failed), NO_PORT));
    assert_eq!(body(&failed)["event"], "service_failed");
    assert_eq!(body(&failed)["exit_code"], 3);
    assert_eq!(body(&failed)["status"], "failed");

    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let failed = service(&mut client, "start", json!({"command": server(port)})).await;
    assert_eq!(body(&failed)["event"], "service_failed");
    let told = text(&failed);
    assert!(
        told.starts_with("Service failed to become ready: "),
        "{told}"
    );
    assert!(
        told.contains(&format!("pid {}", std::process::id())),
        "{told}"
    );
    end(&bench).await;
}

#[tokio::test]
async fn a_wait_that_is_over_leaves_it_running_and_readiness_is_news() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let gate = bench.work.path().join("gate");
    let fifo = gate.to_str().unwrap();
    let script =
        format!("mkfifo {fifo}; echo waiting; read line < {fifo}; echo all is up; exec sleep 300");
    let more =
        json!({"name": "slow", "command": script, "ready_pattern": "all is up", "timeout": 1});
    let late = service(&mut client, "start", more).await;
    insta::assert_snapshot!(plain(&text(&late), NO_PORT));
    assert_eq!(body(&late)["status"], "starting");
    let waits = service(
        &mut client,
        "status",
        json!({"name": "slow", "wait_ms": 50}),
    )
    .await;
    assert_eq!(body(&waits)["event"], "service_started", "{waits}");

    std::fs::write(&gate, "go\n").unwrap();
    let news = client.notification(MESSAGE).await;
    assert_eq!(news["level"], "info", "{news}");
    assert_eq!(news["data"]["event"], "service_ready");
    assert_eq!(news["data"]["serviceId"], body(&late)["id"]);
    let next = client
        .call("command_ps_list", json!({"labels": ["none"]}))
        .await;
    let line = text(&next);
    assert!(line.contains("[news: service slow ("), "{line}");
    assert!(line.contains(") is ready"), "{line}");
    let next = client
        .call("command_ps_list", json!({"labels": ["none"]}))
        .await;
    assert!(!text(&next).contains("[news"), "{next}");
    end(&bench).await;
}

#[tokio::test]
async fn a_crash_after_ready_reaches_the_agent() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let started = service(
        &mut client,
        "start",
        json!({"name": "web", "command": server(port)}),
    )
    .await;
    let pid = body(&started)["pid"].to_string();
    // Not by a call: its answer might tell of the crash, and then nothing is pushed.
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status();
    assert!(killed.is_ok_and(|it| it.success()));
    let news = client.notification(MESSAGE).await;
    assert_eq!(news["level"], "warning", "{news}");
    assert_eq!(news["data"]["event"], "service_failed");
    assert_eq!(news["data"]["serviceId"], body(&started)["id"]);
    assert!(
        news["data"]["reason"].as_str().unwrap().contains("SIGKILL"),
        "{news}"
    );
    let told = news["data"]["message"].as_str().unwrap();
    assert!(told.starts_with("service web ("), "{told}");
    end(&bench).await;
}

#[tokio::test]
async fn a_server_is_recognised_unless_told_otherwise() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let started = client.call("exec", json!({"command": server(port)})).await;
    insta::assert_snapshot!(plain(&text(&started), port));
    let fields = &started["_meta"]["ostler/result"];
    assert_eq!(fields["service"]["event"], "service_ready", "{started}");
    assert_eq!(
        (&fields["status"], &fields["yielded"]),
        (&json!("running"), &json!(true))
    );

    let port = free_port();
    let more = json!({"command": server(port), "mode": "oneshot", "wait_ms": 200});
    let plainly = client.call("exec", more).await;
    assert!(
        plainly["_meta"]["ostler/result"].get("service").is_none(),
        "{plainly}"
    );
    let port = free_port();
    let more = json!({"command": server(port), "mode": "oneshot", "timeout": 1});
    let bounded = client.call("exec", more).await;
    assert_eq!(bounded["_meta"]["code"], "command_timeout", "{bounded}");
    end(&bench).await;
}

#[tokio::test]
async fn a_timeout_bounds_the_wait_for_a_server_and_does_not_end_it() {
    let bench = ServerFixture::new().await;
    let tools = ToolSet::from_groups(&[ToolGroup::Core, ToolGroup::Command, ToolGroup::Shell]);
    let mut client = bench.client_with("s", tools).await;
    let directory = bench.directory();
    let call = |port: u16, more: &str| {
        let words = server(port);
        let line = words
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap());
        let line = line.collect::<Vec<_>>();
        match more {
            "exec" => ("exec", json!({"command": words, "timeout": 30})),
            "execute_shell" => (
                "execute_shell",
                json!({"command": line.join(" "), "timeout": 30}),
            ),
            _ => (
                "command_execute",
                json!({"command": line[0], "args": &line[1..], "directory": directory, "timeout": 30}),
            ),
        }
    };
    for tool in ["exec", "execute_shell", "command_execute"] {
        let port = free_port();
        let (name, arguments) = call(port, tool);
        let answer = client.call(name, arguments).await;
        let told = text(&answer);
        assert!(told.starts_with("Service started with ID: "), "{told}");
        assert!(told.contains("Status: ready"), "{told}");
        assert!(
            told.contains("its timeout of 30 s bounds the wait until it is ready; "),
            "{told}"
        );
        assert!(told.contains(" runs it as a plain command."), "{told}");
        assert!(first_line(port).contains("200"), "{tool}");
    }
    // One that is not ready by then runs on, and the answer says so.
    let dir = std::path::PathBuf::from(bench.directory());
    std::fs::write(dir.join("server.js"), "").unwrap();
    let slow = dir.join("node");
    std::fs::write(&slow, "#!/bin/sh\nexec sleep 300\n").unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&slow, permissions).unwrap();
    let more = json!({"command": [slow, "server.js"], "timeout": 1});
    let late = client.call("exec", more).await;
    let told = text(&late);
    assert!(told.contains("not ready within 1000ms"), "{told}");
    assert!(told.contains("It is still running: ID "), "{told}");
    // With that setting, it is a plain command.
    for (line, code) in [
        (
            "OSTLER_SERVICE=off python3 -m http.server 0",
            "command_timeout",
        ),
        (
            "OSTLER_SERVICE=no timeout 300 python3 -m http.server 0",
            "command_timeout",
        ),
    ] {
        let more = json!({"command": line, "timeout": 1});
        let plain = client.call("execute_shell", more).await;
        assert_eq!(plain["_meta"]["code"], code, "{plain}");
    }
    end(&bench).await;
}

#[tokio::test]
async fn the_tools_of_the_documents_recognise_servers_too() {
    let bench = ServerFixture::new().await;
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Command]))
        .await;
    let port = free_port();
    let directory = bench.directory();
    let mut words = server(port).as_array().unwrap().clone();
    let command = words.remove(0);
    let executed = json!({"command": command, "args": words, "directory": directory});
    let answer = client.call("command_execute", executed).await;
    insta::assert_snapshot!(plain(&text(&answer), port));

    let port = free_port();
    let line = format!("python3 -u -m http.server --bind 127.0.0.1 {port}");
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Shell]))
        .await;
    let answer = client.call("execute_shell", json!({"command": line})).await;
    let told = text(&answer);
    assert!(told.starts_with("Service started with ID: "), "{told}");
    assert!(told.contains("poll_process with process_id"), "{told}");

    let port = free_port();
    let line = format!("python3 -u -m http.server --bind 127.0.0.1 {port}");
    let more = json!({"command": line, "run_mode": "background"});
    let answer = client.call("execute_shell", more).await;
    let told = text(&answer);
    assert!(told.starts_with("Process started in background."), "{told}");
    assert!(told.contains("Recognised as a service ("), "{told}");

    let port = free_port();
    let mut words = server(port).as_array().unwrap().clone();
    let command = words.remove(0);
    let more =
        json!({"command": command, "args": words, "directory": directory, "description": "web"});
    let mut client = bench
        .client_with("s", ToolSet::from_groups(&[ToolGroup::Command]))
        .await;
    let answer = client.call("command_bg_start", more).await;
    let told = &answer["structuredContent"];
    assert!(
        told["note"]
            .as_str()
            .unwrap()
            .starts_with("Recognised as a service ("),
        "{told}"
    );
    assert_eq!(told["service"]["id"], told["pid"]);
    end(&bench).await;
}

#[tokio::test]
async fn nothing_is_recognised_where_that_is_switched_off() {
    let bench =
        ServerFixture::with(|settings| settings.services.automatic = AutoServices::Off).await;
    let mut client = client(&bench).await;
    let port = free_port();
    let more = json!({"command": server(port), "wait_ms": 200});
    let answer = client.call("exec", more).await;
    assert!(
        answer["_meta"]["ostler/result"].get("service").is_none(),
        "{answer}"
    );
    let port = free_port();
    let more = json!({"command": server(port), "mode": "service"});
    let answer = client.call("exec", more).await;
    assert!(
        text(&answer).starts_with("Service started with ID: "),
        "{answer}"
    );
    assert!(!text(&answer).contains("Recognised"), "{answer}");
    end(&bench).await;
}

#[tokio::test]
async fn readiness_is_waited_for_where_there_can_be_any() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let more = json!({"command": server(port), "until": "ready"});
    let ready = client.call("exec", more).await;
    assert!(
        text(&ready).starts_with("Service started with ID: "),
        "{ready}"
    );
    let id = ready["_meta"]["ostler/result"]["id"].clone();
    let more = json!({"action": "wait", "ids": [id], "until": "ready"});
    let waited = client.call("process", more).await;
    assert!(text(&waited).contains("[ready]"), "{waited}");

    let plainly = json!({"command": quiet("hello"), "wait_ms": 0});
    let plainly = client.call("exec", plainly).await;
    let id = plainly["_meta"]["ostler/result"]["id"].clone();
    let mut told = String::new();
    for (tool, arguments) in [
        (
            "process",
            json!({"action": "wait", "ids": [id], "until": "ready"}),
        ),
        (
            "exec",
            json!({"command": ["true"], "until": "ready", "mode": "oneshot"}),
        ),
        (
            "exec",
            json!({"command": ["true"], "until": "ready", "timeout": 5}),
        ),
        ("service", json!({"action": "start"})),
        (
            "service",
            json!({"action": "start", "name": "web", "port": 80}),
        ),
        (
            "service",
            json!({"action": "start", "command": ["true"], "ready_when": "soon"}),
        ),
        (
            "service",
            json!({"action": "start", "command": ["true"], "port": 0}),
        ),
        (
            "service",
            json!({"action": "stop", "name": "web", "tail": 3}),
        ),
        ("service", json!({"action": "status", "name": "web"})),
        (
            "service",
            json!({"action": "start", "command": ["true"], "depends_on": ["db:soon"]}),
        ),
    ] {
        let answer = client.call(tool, arguments.clone()).await;
        assert_eq!(answer["isError"], true, "{answer}");
        let id = id.as_str().unwrap();
        let words = text(&answer).replace(id, "[id]");
        let arguments = arguments.to_string().replace(id, "[id]");
        told.push_str(&format!("{tool} {arguments}\n{words}\n\n"));
    }
    insta::assert_snapshot!(told);
    end(&bench).await;
}

#[tokio::test]
async fn what_is_defined_starts_by_its_name() {
    let bench = ServerFixture::new().await;
    let mut client = client(&bench).await;
    let port = free_port();
    let define = json!({"name": "web", "command": server(port)});
    let defined = service(&mut client, "define", define).await;
    assert_eq!(body(&defined)["name"], "web");
    let listed = service(&mut client, "list", json!({})).await;
    assert_eq!(
        body(&listed)["services"][0]["status"],
        "stopped",
        "{listed}"
    );
    let upped = service(&mut client, "up", json!({"name": "web"})).await;
    assert_eq!(body(&upped)["event"], "service_ready", "{upped}");
    assert_eq!(body(&upped)["reused"], false);
    let again = service(&mut client, "start", json!({"name": "web"})).await;
    assert_eq!(body(&again)["reused"], true, "{again}");
    service(&mut client, "stop", json!({"name": "web"})).await;
    let forgotten = service(&mut client, "forget", json!({"name": "web"})).await;
    assert_eq!(body(&forgotten)["name"], "web");
    let unknown = service(&mut client, "up", json!({"name": "web"})).await;
    assert_eq!(unknown["isError"], true, "{unknown}");
    end(&bench).await;
}

#[tokio::test]
async fn names_hold_within_the_workspace_of_the_session() {
    let bench = ServerFixture::new().await;
    let root = std::path::PathBuf::from(bench.directory());
    let other = root.join("other");
    std::fs::create_dir(&other).unwrap();
    let toml = "[services.web]\ncommand = \"exec sleep 300\"\n\
                [services.api]\ncommand = \"exec sleep 300\"\n\
                depends_on = { migrate = \"completed\" }\n\
                [services.migrate]\ncommand = \"echo migrated\"\n";
    std::fs::write(other.join("ostler.toml"), toml).unwrap();
    let mut neighbour = bench.client_with("t", ToolSet::default()).await;
    let mut client = client(&bench).await;
    let up = service(&mut client, "up", json!({"cwd": other, "wait_ms": 30_000})).await;
    assert!(text(&up).contains("migrate completed: exit code 0"), "{up}");
    let all = body(&up)["services"].as_array().unwrap();
    let told = |it: &Value| (it["name"].clone(), it["event"].clone());
    let migrated = (json!("migrate"), json!("service_completed"));
    assert!(all.iter().any(|it| told(it) == migrated), "{up}");

    let listed = service(&mut client, "list", json!({})).await;
    assert_eq!(body(&listed)["total"], 0, "{listed}");
    let more = body(&listed)["elsewhere"].as_str().unwrap();
    assert!(
        more.starts_with("2 more live in other workspaces"),
        "{listed}"
    );
    let listed = service(&mut client, "list", json!({"all_workspaces": true})).await;
    assert_eq!(body(&listed)["living"], 2, "{listed}");
    // What this session started itself is reached from where the session stands.
    let stopped = service(&mut client, "stop", json!({"name": "web"})).await;
    assert_eq!(body(&stopped)["status"], "stopped", "{stopped}");
    let stopped = service(&mut neighbour, "stop", json!({"name": "api"})).await;
    assert_eq!(stopped["isError"], true, "{stopped}");
    end(&bench).await;
    neighbour.close().await;
    client.close().await;
}
