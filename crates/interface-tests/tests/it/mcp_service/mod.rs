//! Services through MCP: the tool `service`, recognised commands, notifications.

mod detection;
mod names;
mod waits;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::common::{McpTestClient, ServerFixture, normalize_text, text};
use ostler_engine::{ListFilter, StopRequest};
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
    let response = body(&started);
    assert_eq!(response["event"], "service_ready");
    assert_eq!(
        (&response["name"], &response["status"]),
        (&json!("web"), &json!("ready"))
    );
    assert_eq!(response["ports"][0]["port"], port);
    assert_eq!(response["message"], text(&started));
    assert!(response["pid"].is_number() && !response["evidence"].as_array().unwrap().is_empty());
    assert!(first_line(port).contains("200"));

    let ensured = service(&mut client, "ensure", more.clone()).await;
    assert_eq!(body(&ensured)["reused"], true);
    assert_eq!(body(&ensured)["id"], response["id"]);
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
    assert_eq!(listed["services"][0]["id"], response["id"]);
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
    let response = text(&failed);
    assert!(
        response.starts_with("Service failed to become ready: "),
        "{response}"
    );
    assert!(
        response.contains(&format!("pid {}", std::process::id())),
        "{response}"
    );
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
    // Not by a call: its response might report the crash, and then nothing is pushed.
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
    let response = news["data"]["message"].as_str().unwrap();
    assert!(response.starts_with("service web ("), "{response}");
    end(&bench).await;
}
